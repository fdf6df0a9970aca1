//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/test/chaos/history"
	"github.com/berth-hpc/berth/test/chaos/load"
)

// loadTime is how long jobs are submitted and daemons killed.
const loadTime = 3 * time.Minute

// testDaemonsKilledUnderLoad submits jobs all the time while kubelets, containerd, agents and whole
// nodes are killed, and checks the promises of docs/reliability.md as the chaos suite does.
func testDaemonsKilledUnderLoad(t *testing.T, ctx context.Context, s *Site) {
	for _, n := range s.nodes {
		path := filepath.Join(n.spec.Logs, restartFile)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
	}
	dir := filepath.Join(user.Home(), "load")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(user.ID), int(user.ID)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chaos.sh"), []byte(load.Script(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &history.History{Nodes: nodesOf(t, ctx, s, dir)}
	seed := uint64(time.Now().UnixNano() % 1e9)
	loading, stop := context.WithTimeout(ctx, loadTime)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { h.Submissions = submitLoad(loading, s, dir, rand.New(rand.NewPCG(seed, 1))) })
	wg.Go(func() { h.Faults = killDaemons(t, loading, s, rand.New(rand.NewPCG(seed, 2))) })
	wg.Wait()
	err := waitFor(ctx, 5*time.Minute, func() bool {
		out, err := s.As(ctx, user, dir, "squeue", "-h", "-o", "%A|%j|%T|%r")
		if err == nil {
			h.Queue, err = history.ParseQueue(out)
		}
		return err == nil && len(h.Queue) == 0
	})
	if err != nil {
		t.Errorf("the queue is not empty: %v", err)
	}
	readLoad(t, ctx, s, dir, h)
	kinds := map[string]int{}
	for _, f := range h.Faults {
		kinds[f.Kind]++
	}
	states := map[string]int{}
	for _, r := range h.Records {
		states[r.State]++
	}
	t.Logf("seed %d: %d submissions, %d records %v, %d lines, killed %v", seed, len(h.Submissions), len(h.Records), states,
		len(h.Marks), kinds)
	for _, v := range history.Check(h) {
		t.Errorf("%s: %s", v.Promise, v.Text)
	}
}

// nodesOf returns the CPUs of the nodes.
func nodesOf(t *testing.T, ctx context.Context, s *Site, dir string) map[string]history.Node {
	out, err := s.As(ctx, user, dir, "sinfo", "-h", "-N", "-o", "%N %c")
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]history.Node{}
	for line := range strings.Lines(out) {
		var name string
		var n history.Node
		if _, err := fmt.Sscan(line, &name, &n.CPUs); err == nil {
			nodes[name] = n
		}
	}
	return nodes
}

// submitLoad submits jobs until ctx ends.
func submitLoad(ctx context.Context, s *Site, dir string, r *rand.Rand) (all []history.Submission) {
	for i := 0; ctx.Err() == nil; i++ {
		j := history.Job{Nodes: 1, CPUs: 1, Run: time.Duration(500+r.IntN(8000)) * time.Millisecond}
		args := []string{"--parsable", "-J", fmt.Sprintf("load-%d", i), "-o", "/dev/null", "--mem=32", "-c1"}
		switch r.IntN(4) {
		case 0:
			j.Nodes = 2
			args = append(args, "-N2")
		case 1:
			j.Tasks = []int{1, 2, 3}
			args = append(args, "-a1-3")
		case 2:
			j.ExitCode = 3
		}
		args = append(args, "chaos.sh", strconv.FormatInt(j.Run.Milliseconds(), 10), strconv.Itoa(j.ExitCode))
		x := history.Submission{Name: fmt.Sprintf("load-%d", i), User: user.Name, Args: args, Call: time.Now(), Job: j}
		out, err := s.As(context.WithoutCancel(ctx), user, dir, "sbatch", args...)
		x.Return, x.Answer = time.Now(), strings.TrimSpace(out)
		if err != nil {
			x.Exit, x.Answer = 1, err.Error()
		}
		x.ID, _ = strconv.ParseInt(x.Answer, 10, 64)
		all = append(all, x)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(500+r.IntN(3000)) * time.Millisecond):
		}
	}
	return all
}

// killDaemons kills a part of a node every few seconds until ctx ends, and waits until every node is
// ready again.
func killDaemons(t *testing.T, ctx context.Context, s *Site, r *rand.Rand) (all []history.Fault) {
	for {
		select {
		case <-ctx.Done():
			return all
		case <-time.After(time.Duration(2000+r.IntN(6000)) * time.Millisecond):
		}
		node := s.nodes[r.IntN(len(s.nodes))]
		f := history.Fault{Target: node.spec.Name, Begin: time.Now()}
		var err error
		switch f.Kind = []string{"kubelet", "containerd", "agents", "node"}[r.IntN(4)]; f.Kind {
		case "agents":
			_ = node.killProcesses(isAgent) // perhaps no job runs there
		case "node":
			err = node.killAll()
		default:
			err = node.killDaemon(f.Kind)
		}
		if err != nil {
			t.Logf("killing %s of %s: %v", f.Kind, f.Target, err)
			continue
		}
		if err := s.waitReady(context.WithoutCancel(ctx), node); err != nil {
			t.Error(err)
		}
		f.End = time.Now()
		all = append(all, f)
	}
}

// readLoad reads accounting and what the jobs wrote.
func readLoad(t *testing.T, ctx context.Context, s *Site, dir string, h *history.History) {
	t.Helper()
	_ = waitFor(ctx, time.Minute, func() bool {
		out, err := s.asWith(ctx, user, []string{"SLURM_TIME_FORMAT=%s"}, dir, "sacct", "-n", "-P", "-X", "-S", "now-1hour",
			"-o", history.RecordFields)
		if err != nil {
			return false
		}
		records, err := history.ParseRecords(out)
		h.Records = nil
		late := false
		for _, x := range records {
			if strings.HasPrefix(x.Name, "load-") {
				h.Records = append(h.Records, x)
				late = late || !history.IsFinal(x.State)
			}
		}
		return err == nil && !late
	})
	files, _ := filepath.Glob(filepath.Join(dir, "job-*"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		marks, err := history.ParseMarks(string(text))
		if err != nil {
			t.Fatal(err)
		}
		h.Marks = append(h.Marks, marks...)
	}
}
