package agent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
)

// resources are the system resources that a process uses.
type resources struct {
	files, children int
	memory          int64 // resident, KiB
	threads         int64
}

// resourcesOf returns the resources of a process. files is -1 if they are not readable.
func resourcesOf(t *testing.T, pid int) (h resources) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	fds, err := os.ReadDir(dir + "/fd")
	if h.files = len(fds); errors.Is(err, fs.ErrPermission) {
		h.files = -1
	} else if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			h.memory = n
		case "Threads":
			h.threads = n
		}
	}
	h.children = len(childrenOf(t, pid))
	return h
}

// childrenOf lists the children of a process, including zombies.
func childrenOf(t *testing.T, pid int) (list []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(pid) {
			list = append(list, string(b))
		}
	}
	return list
}

// TestManyStepsLeaveNothing runs steps in one job, in sequence and in parallel, and
// compares the agents' resources before and after. With BERTH_TEST_FULL=1 it runs
// 10,000 steps.
func TestManyStepsLeaveNothing(t *testing.T) {
	t.Parallel()
	steps := 100
	if len(raceFlag) > 0 {
		steps = 40 // each takes ten times as long
	}
	if os.Getenv("BERTH_TEST_FULL") != "" {
		steps = 10_000
	}
	script := fmt.Sprintf(`#!/bin/bash
for ((i = 0; i < 20; i++)); do srun --overlap sh -c 'sleep 600 & exit 0'; done
echo warm
until [ -e go ]; do sleep 0.05; done
for ((i = 0; i < %d / 4; i++)); do
	srun --overlap true & srun --overlap -N1 -n1 sh -c 'echo x >&2; exit 3' 2>/dev/null & srun --overlap sh -c 'sleep 600 & exit 0'
	echo input | srun --overlap -i0 cat >/dev/null
	wait
done
echo finished
until [ -e end ]; do sleep 0.05; done
`, steps)
	g := start(t, shape{cpus: []int32{2, 2}, script: script})
	g.long = true // limited by go test's timeout
	g.await("warm")
	measure := func() (all []resources) {
		for _, n := range g.nodes {
			all = append(all, resourcesOf(t, n.Process.Pid))
		}
		return all
	}
	before := measure()
	touch(t, filepath.Join(g.dir, "go"))
	g.await("finished")
	var after []resources
	for end := time.Now().Add(eventually.Timeout); ; time.Sleep(50 * time.Millisecond) {
		after = measure()
		same := true
		for i := range after {
			same = same && after[i].children <= before[i].children && after[i].files <= before[i].files+8
		}
		if same || time.Now().After(end) {
			break
		}
	}
	for i := range after {
		t.Logf("node %d before %+v, after %d steps %+v", i, before[i], steps, after[i])
		if after[i].children > before[i].children || after[i].files > before[i].files+8 ||
			after[i].threads > before[i].threads+16 ||
			len(raceFlag) == 0 &&
				after[i].memory > before[i].memory+16<<10 { // the race detector needs memory of its own
			t.Errorf(
				"node %d used %+v before and uses %+v now; its children:\n%s",
				i,
				before[i],
				after[i],
				strings.Join(childrenOf(t, g.nodes[i].Process.Pid), ""),
			)
		}
	}
	touch(t, filepath.Join(g.dir, "end"))
	if r, out := g.finish(); r.Kind != wire.ReportEnded || r.Status != 0 {
		t.Errorf("%+v\n%s", r, out)
	}
	eventually.Succeeds(t, "the agent of the first node, which ends after its report, has removed its files", func() error {
		left, err := os.ReadDir(g.tmp[0])
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		return err
	})
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAgentKilledEndsStep checks that a step ends with Slurm's messages when one of its agents is
// killed: the tasks on other nodes are terminated, and srun exits with a code.
func TestAgentKilledEndsStep(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1, 1, 1}, script: "#!/bin/sh\n" +
		"srun sh -c 'echo up $SLURM_PROCID $$; exec sleep 600' 2>&1\necho code $?\n"})
	for i := range 3 {
		g.await(fmt.Sprintf("up %d ", i))
	}
	if err := g.nodes[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r, out := g.finish()
	for _, want := range []string{"srun: error: Node failure on n2\n", "\ncode 1", "DUE TO NODE FAILURE"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in output:\n%s", want, out)
		}
	}
	if r.Kind != wire.ReportEnded || r.LostNode != "n2" {
		t.Errorf("report %+v", r)
	}
	for line := range strings.Lines(out) {
		var rank, pid int
		if n, _ := fmt.Sscanf(line, "up %d %d", &rank, &pid); n == 2 && rank != 1 && syscall.Kill(pid, 0) == nil {
			t.Errorf("task %d is left", rank)
		}
	}
}

// TestVanishedClientEndsStep checks that the tasks end when srun is killed.
func TestVanishedClientEndsStep(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1, 1}, script: "#!/bin/bash\n" +
		"srun sh -c 'echo up $SLURM_PROCID $$; exec sleep 600' &\nuntil [ -e go ]; do sleep 0.05; done\n" +
		"kill -9 $!\nwait $! 2>/dev/null\nsrun echo next\n"})
	g.await("up 0 ")
	g.await("up 1 ")
	touch(t, filepath.Join(g.dir, "go"))
	r, out := g.finish()
	if r.Kind != wire.ReportEnded || r.Status != 0 || strings.Count(out, "next\n") != 2 {
		t.Errorf("%+v\n%s", r, out)
	}
	for line := range strings.Lines(out) {
		var rank, pid int
		if n, _ := fmt.Sscanf(line, "up %d %d", &rank, &pid); n == 2 && syscall.Kill(pid, 0) == nil {
			t.Errorf("task %d is left", rank)
		}
	}
}

// rank is a task that uses PMI-1: it puts a value, waits at a fence, and gets the value of
// the next task.
const rank = `say() { echo "$1" >&3; read -r answer <&3; }
say "cmd=init pmi_version=1 pmi_subversion=1"
say "cmd=put kvsname=k key=key$PMI_RANK value=of$PMI_RANK"
say "cmd=barrier_in"
next=$(( (PMI_RANK + 1) % PMI_SIZE ))
say "cmd=get kvsname=k key=key$next"
case $answer in *"value=of$next") echo met ;; *) echo "rank $PMI_RANK: $answer" ;; esac
say "cmd=finalize"
`

// TestManyRanks runs a step with more ranks than CPUs through a fence. With
// BERTH_TEST_FULL=1 it has 1,024 ranks.
func TestManyRanks(t *testing.T) {
	ranks := 64
	if os.Getenv("BERTH_TEST_FULL") != "" {
		ranks = 1024
	}
	g := start(t, shape{cpus: []int32{2, 2, 2, 2}, script: fmt.Sprintf(
		"#!/bin/sh\ncat > rank.sh <<'END'\n%sEND\nsrun -O -n%d --mpi=pmi2 sh rank.sh > out 2>&1\necho code $?\nsort out | uniq -c\n",
		rank,
		ranks,
	)})
	g.await("code ")
	r, out := g.finish()
	if r.Kind != wire.ReportEnded || out != fmt.Sprintf("code 0\n%7d met\n", ranks) {
		t.Errorf("%+v\n%s", r, out)
	}
}
