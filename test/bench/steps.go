package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stepsSuite measures srun inside of jobs. A Slurm with fewer than ten nodes
// leaves the row of ten empty.
var stepsSuite = suite{
	name:  "steps",
	up:    []string{"--nodes=10", "--cpus=4", "--memory=4000M"},
	ups:   1,
	marks: marks{"<!-- steps: written by make bench-steps -->\n", "<!-- end of steps -->\n"},
	measures: []measure{
		{"`srun hostname` in an allocation of 1 node", "60 ms", stepOn(1)},
		{"`srun hostname` in an allocation of 10 nodes", "150 ms", onNodes(10, stepOn(10))},
		{"1,000 steps in sequence", "", inJob("-N1 -n1", "",
			`for s in $(seq 1000); do srun -N1 -n1 true || exit 1; done`, 1)},
		{"64 steps side by side, to the last one's end", "", inJob("-N4 --ntasks-per-node=4", "",
			`for s in $(seq 64); do srun --overlap -N1 -n1 true & done; wait`, 3)},
		{
			"1 GB of a task's output through `srun`", "",
			inJob("-N1 -n1", "", `srun -N1 -n1 head -c 1000000000 /dev/zero`, 1),
		},
		{"`sbcast` of 256 MB to 4 nodes", "", inJob("-N4 --ntasks-per-node=1",
			`head -c 256000000 /dev/urandom > bcast.src`,
			`sbcast -f bcast.src /tmp/berth-bench-bcast`, 3)},
		{"`sbcast` of 1 GB to 8 nodes", "", onNodes(8,
			inJob("-N8 --ntasks-per-node=1", `head -c 1000000000 /dev/urandom > bcast.src`,
				`sbcast -f bcast.src /tmp/berth-bench-bcast; rm -f /tmp/berth-bench-bcast`, 3))},
		{"128 PMI-2 ranks on 4 nodes: start, fence, end", "", ranks(128)},
		{"512 PMI-2 ranks", "", ranks(512)},
		{"1,024 PMI-2 ranks", "", ranks(1024)},
	},
	after: agentSize,
}

// jobTime is the time limit of one job of this suite.
const jobTime = 5 * time.Minute

// timedScript times a command, in microseconds, one a line.
const timedScript = `#!/bin/bash
%s
for i in $(seq %d); do
	a=${EPOCHREALTIME/./}
	{ %s; } >/dev/null 2>failed || { cat failed; exit 1; }
	echo $((${EPOCHREALTIME/./} - a))
done
echo end
`

// inJob measures a command in a job, at most that many times.
func inJob(flags, prepare, command string, most int) func(context.Context, *system, int) (samples, error) {
	return func(ctx context.Context, s *system, n int) (samples, error) {
		file := filepath.Join(s.dir, fmt.Sprintf("job-%d", time.Now().UnixNano()))
		script := fmt.Appendf(nil, timedScript, prepare, min(n, most), command)
		if err := os.WriteFile(file+".sh", script, 0o755); err != nil {
			return nil, err
		}
		args := append(strings.Fields(flags), "-t", "10", "-o", file+".out", file+".sh")
		if _, err := s.output(ctx, "sbatch", args...); err != nil {
			return nil, err
		}
		text, err := waitForLine(ctx, file+".out", "end", jobTime)
		if err != nil {
			return nil, err
		}
		return microseconds(text)
	}
}

// onNodes leaves a measure out where there are fewer nodes.
func onNodes(
	least int, run func(context.Context, *system, int) (samples, error),
) func(context.Context, *system, int) (samples, error) {
	return func(ctx context.Context, s *system, n int) (samples, error) {
		text, err := s.output(ctx, "sinfo", "-h", "-o", "%D", "-t", "idle,mix,alloc")
		if err != nil {
			return nil, err
		}
		most := 0
		for _, word := range strings.Fields(text) {
			if n, err := strconv.Atoi(word); err == nil {
				most = max(most, n)
			}
		}
		if most < least {
			return nil, nil
		}
		return run(ctx, s, n)
	}
}

// ranks times a step whose tasks meet at one fence.
func ranks(n int) func(context.Context, *system, int) (samples, error) {
	return func(ctx context.Context, s *system, times int) (samples, error) {
		program := filepath.Join(filepath.Dir(s.dir), "rank")
		if _, err := os.Stat(program); err != nil {
			build := exec.CommandContext(ctx, "go", "build", "-o", program, "./test/bench/rank")
			if out, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("build rank: %w: %s", err, out)
			}
		}
		return inJob("-N4 --ntasks-per-node=4", "", fmt.Sprintf("srun -O -N4 -n%d --mpi=pmi2 %s", n, program), 3)(ctx,
			s, times)
	}
}

// agentSize returns the size of the agent, and the memory of a job's agents after some
// steps.
func agentSize(ctx context.Context, s *system) (string, error) {
	info, err := os.Stat(filepath.Join(s.bin, "agent"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "agent.out")
	script := `for i in $(seq 20); do srun -N2 true; done; awk '/^VmRSS/ {print $2}' /proc/$PPID/status; echo end`
	if _, err := s.output(ctx, "sbatch", "-N2", "-o", file, "--wrap", script); err != nil {
		return "", err
	}
	text, err := waitForLine(ctx, file, "end", patience)
	if err != nil {
		return "", err
	}
	kib, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		return "", fmt.Errorf("the job said: %s", text)
	}
	return fmt.Sprintf("The agent's program has %.1f MB (at most 10), the agent of a job's first node %.1f MB of memory after 20 steps (at most 20).\n",
		float64(info.Size())/1e6, float64(kib)*1024/1e6), nil
}
