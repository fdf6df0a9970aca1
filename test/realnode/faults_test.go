//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faulty is a script whose job notes each of its starts and ends.
const faulty = `note() { echo "$1 $SLURM_JOB_NAME ${SLURM_RESTART_COUNT:-0} $(hostname)" >>faults.out; }
note start; until [ -e "$SLURM_JOB_NAME.go" ]; do sleep 0.2; done; note end`

// testDaemonsKilled kills what a real node consists of while jobs run: its kubelet, its
// containerd, an agent, and everything at once, as a reboot does. Daemons are started again,
// as by systemd. Every job has one final state that is true, and no attempt runs twice.
func testDaemonsKilled(t *testing.T, ctx context.Context, s *Site) {
	for _, n := range s.nodes {
		path := filepath.Join(n.spec.Logs, restartFile)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
	}
	job := func(name, node string, options ...string) string {
		args := append([]string{"-J", name, "-w", node, "-N1", "-n1", "--mem=64", "-o", "/dev/null"}, options...)
		id := submit(t, ctx, s, append(args, "--wrap", faulty)...)
		waitForNote(t, ctx, "start "+name+" 0 "+node)
		return id
	}
	proceed := func(name string) {
		if err := os.WriteFile(filepath.Join(user.Home(), name+".go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Jobs do not notice that daemons are started again.
	for i, daemon := range []string{"kubelet", "containerd"} {
		node := s.nodes[i]
		id := job(daemon, node.spec.Name)
		if err := node.killDaemon(daemon); err != nil {
			t.Fatal(err)
		}
		late := submit(t, ctx, s, "-w", node.spec.Name, "-N1", "-n1", "--mem=64", "-o", "/dev/null", "--wrap", "true")
		proceed(daemon)
		waitForState(t, ctx, s, id, "COMPLETED")
		waitForState(t, ctx, s, late, "COMPLETED")
		expectNotes(t, daemon, "start "+daemon+" 0 "+node.spec.Name, "end "+daemon+" 0 "+node.spec.Name)
	}
	node := s.nodes[2]
	// The agent of the batch host is the job's first process: what it runs dies with it.
	killed := job("agent", node.spec.Name, "--requeue")
	if err := node.killProcesses(isAgent); err != nil {
		t.Fatal(err)
	}
	proceed("agent")
	waitForState(t, ctx, s, killed, "COMPLETED")
	expectNotes(t, "agent", "start agent 0 n3", "start agent 1 n3", "end agent 1 n3")
	again, once := job("again", node.spec.Name, "--requeue"), job("once", node.spec.Name, "--no-requeue")
	began := time.Now()
	if err := node.killAll(); err != nil {
		t.Fatal(err)
	}
	states := []string{}
	proceed("again")
	for _, id := range []string{again, once} {
		states = append(states, waitForEnd(t, ctx, s, id))
	}
	t.Logf("%.0f s after the reboot the jobs are %v, and have written %q", time.Since(began).Seconds(), states, notesOf(""))
	expectNotes(t, "once", "start once 0 n3")
	if states[0] == "COMPLETED" {
		expectNotes(t, "again", "start again 0 n3", "start again 1 ", "end again 1 ")
	} else {
		expectNotes(t, "again", "start again 0 n3")
	}
	if states[1] != "FAILED" && states[1] != "NODE_FAIL" {
		t.Errorf("the job that must not be requeued became %s", states[1])
	}
	for _, n := range s.nodes {
		if err := s.waitReady(ctx, n); err != nil {
			t.Error(err)
		}
	}
}

// notesOf returns the lines that jobs of that name wrote; "" is every name.
func notesOf(name string) (lines []string) {
	text, _ := os.ReadFile(filepath.Join(user.Home(), "faults.out"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && (name == "" || f[1] == name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func waitForNote(t *testing.T, ctx context.Context, want string) {
	t.Helper()
	err := waitFor(ctx, 3*time.Minute, func() bool {
		return slices.ContainsFunc(notesOf(""), func(line string) bool { return strings.HasPrefix(line, want) })
	})
	if err != nil {
		t.Fatalf("no job wrote %q, but %q: %v", want, notesOf(""), err)
	}
}

// expectNotes compares what the jobs of that name wrote with the beginnings of lines.
func expectNotes(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := notesOf(name); !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("job %s wrote %q, want %q", name, got, want)
	}
}

// waitForEnd waits until a job has ended, and returns its state.
func waitForEnd(t *testing.T, ctx context.Context, s *Site, id string) (state string) {
	t.Helper()
	err := waitFor(ctx, 2*time.Minute, func() bool {
		out, _ := s.As(ctx, user, user.Home(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		state = strings.TrimSpace(out)
		return slices.Contains(final, state)
	})
	if err != nil {
		t.Fatalf("job %s is %q: %v", id, state, err)
	}
	ended[id] = state
	return state
}

// isAgent reports whether a process is the agent of a job.
func isAgent(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(name)) == "agent"
}

// killProcesses kills the processes in containers of the node for which is is true.
func (n *node) killProcesses(is func(pid int) bool) error {
	killed := 0
	for _, pid := range n.processes() {
		if is(pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("node %s has no such process", n.spec.Name)
	}
	return nil
}

// killAll kills every process of the node but its first one, which starts the daemons again.
// The disks of containerd and kubelet stay.
func (n *node) killAll() error {
	return n.killProcesses(func(pid int) bool { return pid != n.cmd.Process.Pid })
}

// processes returns the processes in the node's control groups or in its mount namespace.
func (n *node) processes() (all []int) {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", n.cmd.Process.Pid))
	if err != nil {
		return nil
	}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range paths {
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			continue
		}
		groups, _ := os.ReadFile(p + "/cgroup")
		mounts, _ := os.Readlink(p + "/ns/mnt")
		if mounts == own || strings.Contains(string(groups), n.spec.Cgroup+"/") {
			all = append(all, pid)
		}
	}
	return all
}
