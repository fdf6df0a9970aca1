package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestSuspendReachesEveryProcess checks that suspending stops the processes of the script
// and of tasks on both nodes, including those that left their session and fork.
func TestSuspendReachesEveryProcess(t *testing.T) {
	t.Parallel()
	g := start(t, shape{cpus: []int32{1, 1}, script: `#!/bin/sh
setsid sh -c 'while :; do echo x >> far; sleep 0.01; done' &
srun -l sh -c 'setsid sh -c "while :; do echo x >> task-$SLURM_PROCID; sleep 0.01; done" & sleep 600' &
while :; do echo x >> script; sleep 0.01; done
`})
	files := []string{"far", "script", "task-0", "task-1"}
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(g.dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	// grows waits until each file has grown.
	grows := func() {
		t.Helper()
		for _, name := range files {
			before := size(name)
			eventually.Holds(t, name+" grows", func() bool { return size(name) > before })
		}
	}
	grows()
	g.command(wire.Command{Kind: wire.CommandSignal, Signal: int32(syscall.SIGSTOP), Full: true, Every: true})
	eventually.Succeeds(t, "all processes are stopped", func() error {
		if running := g.running(); len(running) > 0 {
			return errors.New(strings.Join(running, "; "))
		}
		return nil
	})
	g.command(wire.Command{Kind: wire.CommandSignal, Signal: int32(syscall.SIGCONT), Full: true, Every: true})
	grows()
}

// running lists the descendants of the gang's agents that are not stopped.
func (g *gang) running() []string {
	children := map[string][]string{} // by the parent's pid
	state := map[string]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid := filepath.Base(filepath.Dir(path))
		state[pid] = fields[0]
		children[fields[1]] = append(children[fields[1]], pid)
	}
	var out []string
	var walk func(pid string)
	walk = func(pid string) {
		for _, c := range children[pid] {
			// State D: a shell waits for a child that was stopped before exec (vfork).
			if s := state[c]; s != "T" && s != "Z" && s != "D" {
				cmd, _ := os.ReadFile("/proc/" + c + "/cmdline")
				out = append(out, c+" "+s+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
			}
			walk(c)
		}
	}
	for _, n := range g.nodes {
		walk(strconv.Itoa(n.Process.Pid))
	}
	return out
}
