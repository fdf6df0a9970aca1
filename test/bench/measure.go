package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// samples are measurements of one kind, in no order.
type samples []time.Duration

func (s samples) median() time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// measure is one line of the table.
type measure struct {
	name string
	goal string // DESIGN's mark to pass
	run  func(ctx context.Context, s *system, n int) (samples, error)
}

// basicSuite are single calls on a cluster with little to do.
var basicSuite = suite{
	name: "basic", up: []string{"--nodes=3"}, ups: 3,
	marks: marks{"<!-- table: written by make bench -->\n", "<!-- end of table -->\n"},
	measures: []measure{
		{"`sbatch`, one call", "20 ms", sbatchCall},
		{"`squeue`, one call, few jobs", "12 ms", squeueCall},
		{"submission to first line of output, one node", "", firstLine},
		{"`srun hostname` in an allocation of 1 node", "60 ms", stepOn(1)},
		{"`srun hostname` in an allocation of 3 nodes", "", stepOn(3)},
	},
}

// patience is how long a job may take; it takes seconds.
const patience = time.Minute

// timed runs f n times.
func timed(n int, f func(i int) error) (samples, error) {
	var all samples
	for i := range n {
		start := time.Now()
		if err := f(i); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}

// sbatchCall submits jobs that are held, so that only the call is measured.
func sbatchCall(ctx context.Context, s *system, n int) (samples, error) {
	var ids []string
	all, err := timed(n, func(int) error {
		id, err := s.output(ctx, "sbatch", "--parsable", "--hold", "-N1", "-o", "/dev/null", "--wrap", "true")
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = s.output(ctx, "scancel", ids...)
	return all, err
}

func squeueCall(ctx context.Context, s *system, n int) (samples, error) {
	return timed(n, func(int) error {
		_, err := s.output(ctx, "squeue")
		return err
	})
}

func firstLine(ctx context.Context, s *system, n int) (samples, error) {
	return timed(n, func(i int) error {
		file := filepath.Join(s.dir, fmt.Sprintf("first-%d.out", i))
		if _, err := s.output(ctx, "sbatch", "-N1", "-n1", "-o", file, "--wrap", "echo first"); err != nil {
			return err
		}
		_, err := waitForLine(ctx, file, "first", patience)
		return err
	})
}

// stepScript times its steps itself, in microseconds, one a line.
const stepScript = `#!/bin/bash
srun hostname >/dev/null 2>&1
for i in $(seq %d); do
	a=${EPOCHREALTIME/./}
	srun hostname >/dev/null 2>&1 || exit
	echo $((${EPOCHREALTIME/./} - a))
done
echo end
`

func stepOn(nodes int) func(context.Context, *system, int) (samples, error) {
	return func(ctx context.Context, s *system, n int) (samples, error) {
		file := filepath.Join(s.dir, fmt.Sprintf("steps-%d", nodes))
		if err := os.WriteFile(file+".sh", fmt.Appendf(nil, stepScript, n), 0o755); err != nil {
			return nil, err
		}
		_, err := s.output(ctx, "sbatch", "-N"+strconv.Itoa(nodes), "--ntasks-per-node=1", "-t", "5", "-o", file+".out",
			file+".sh")
		if err != nil {
			return nil, err
		}
		text, err := waitForLine(ctx, file+".out", "end", patience)
		if err != nil {
			return nil, err
		}
		return microseconds(text)
	}
}

// microseconds parses the times that a script measured.
func microseconds(text string) (samples, error) {
	var all samples
	for _, line := range strings.Fields(strings.TrimSuffix(text, "end\n")) {
		us, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("the job said: %s", text)
		}
		all = append(all, time.Duration(us)*time.Microsecond)
	}
	return all, nil
}

// waitForLine waits until the file ends with a line and returns its text.
func waitForLine(ctx context.Context, file, line string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("no end after "+limit.String()))
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(file)
		if err == nil && strings.HasSuffix("\n"+string(b), "\n"+line+"\n") {
			return string(b), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s: %w (it holds %q)", filepath.Base(file), context.Cause(ctx), b)
		case <-tick.C:
		}
	}
}
