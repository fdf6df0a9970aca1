package complete

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// cluster is a fake that returns its fields, or err.
type cluster struct {
	Cluster
	jobs, mine []status.Job
	partitions []status.Partition
	err        error
	wait       bool // until the context is cancelled
	requests   atomic.Int32
}

func (c *cluster) User() string { return "alice" }

func (c *cluster) Jobs(_ context.Context, f jobs.Filter) (*status.JobList, error) {
	c.requests.Add(1)
	if len(f.Users) > 0 {
		return &status.JobList{Items: c.mine}, nil
	}
	return &status.JobList{Items: c.jobs}, c.err
}

func (c *cluster) Partitions(ctx context.Context) (*status.PartitionList, error) {
	c.requests.Add(1)
	if c.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &status.PartitionList{Items: c.partitions}, c.err
}

// fixture is a user with a kubeconfig and a fake of the cluster.
type fixture struct {
	t   *testing.T
	c   *cluster
	env map[string]string
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	text := "current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nclusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: x, user: {token: t}}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &fixture{
		t:   t,
		c:   &cluster{},
		now: time.Unix(1e9, 0),
		env: map[string]string{"HOME": dir, "KUBECONFIG": config},
	}
}

func (w *fixture) run(args ...string) string {
	w.t.Helper()
	var out, err bytes.Buffer
	p := stdio.System()
	p.Out, p.Err = &out, &err
	p.Now = func() time.Time { return w.now }
	p.LookupEnv = func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
	Run(
		p,
		args,
		func(*stdio.Process) (Cluster, error) { return w.c, nil },
		func(n string) bool { l, _ := option.Of(n); return l != nil },
		nil,
	)
	if err.Len() > 0 {
		w.t.Errorf("%q prints an error: %s", args, err.String())
	}
	return out.String()
}

// offers returns the words that an output offers.
func offers(output string) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")[1:]
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "\t")
	}
	return strings.Join(lines, " ")
}

func (w *fixture) cacheFile() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.env["HOME"], ".cache/berth/*"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("cache files: %q, %v", found, err)
	}
	return found[0]
}

func TestCache(t *testing.T) {
	w := newFixture(t)
	w.c.partitions = []status.Partition{{Name: "debug", State: "UP"}, {Name: "secret", Hidden: true}}
	check := func(want string, requests int) {
		t.Helper()
		if got := offers(w.run("zsh", "squeue", "-p", "")); got != want {
			t.Errorf("offers %q, want %q", got, want)
		}
		if made := int(w.c.requests.Load()); made != requests {
			t.Errorf("%d requests, want %d", made, requests)
		}
	}
	check("debug", 1)
	info, err := os.Lstat(w.cacheFile())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("cache: %v, %v", info.Mode(), err)
	}
	w.c.partitions = append(w.c.partitions, status.Partition{Name: "gpu", State: "UP"})
	check("debug", 1) // from the cache
	w.now = w.now.Add(freshFor)
	check("debug gpu", 2)
	w.now, w.c.err = w.now.Add(time.Minute), errors.New("down")
	check("debug gpu", 3) // stale, as there are no newer ones
	check("debug gpu", 3) // no request soon after a failure
	w.now = w.now.Add(2 * staleFor)
	check("", 4)
	w.now, w.c.err = w.now.Add(-5*staleFor), nil // the clock was set back
	check("debug gpu", 5)
	if err := os.WriteFile(w.cacheFile(), []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("debug gpu", 6)
	// Other users could have written it.
	if err := os.Chmod(w.cacheFile(), 0o644); err != nil {
		t.Fatal(err)
	}
	check("debug gpu", 7)
	delete(w.env, "HOME")
	check("debug gpu", 8)
	check("debug gpu", 9)
}

func TestOwnJobsFirst(t *testing.T) {
	w := newFixture(t)
	w.c.mine = []status.Job{{ID: 7, Name: "mine", User: "alice", State: "RUNNING"}}
	w.c.jobs = append(
		[]status.Job{
			{ID: 3, Name: "a", User: "bob", State: "PENDING"},
			{ID: 9, Name: "b", User: "bob", State: "RUNNING"},
			{ID: 12, ArrayJobID: 12, ArrayTaskID: "0-9%2", Name: "arr", User: "bob", State: "PENDING"},
		},
		w.c.mine...)
	output := w.run("fish", "scancel", "")
	if got := offers(output); got != "7 12 9 3" {
		t.Errorf("%q", got)
	}
	for _, want := range []string{"7\tmine RUNNING\n", "12\tarr PENDING bob [0-9%2]\n"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q lacks %q", output, want)
		}
	}
	// The queue is too long for the time limit.
	w.now, w.c.err = w.now.Add(time.Minute), context.DeadlineExceeded
	if got := offers(w.run("fish", "scancel", "")); got != "7" {
		t.Errorf("only the own jobs are known: %q", got)
	}
	if got := offers(w.run("fish", "squeue", "-p", "")); got != "" {
		t.Errorf("partitions of a cluster that does not respond: %q", got)
	}
}

// TestNoResponse checks that options are completed while the cluster does not respond.
func TestNoResponse(t *testing.T) {
	w := newFixture(t)
	w.c.wait = true
	w.env[envTimeout] = "200ms"
	if got := offers(w.run("zsh", "squeue", "-p", "")); got != "" {
		t.Errorf("%q", got)
	}
	w.env["SLURM_COMP_VALUE"] = "0"
	eventually.Holds(t, "the request is made, if late", func() bool { return w.c.requests.Load() > 0 })
	before := w.c.requests.Load()
	w.now = w.now.Add(time.Minute)
	if got := w.run("zsh", "squeue", "-p", ""); offers(got) != "" || w.c.requests.Load() != before {
		t.Errorf("%q after %d requests", got, w.c.requests.Load()-before)
	}
}

// TestInvalidCalls checks that invalid calls print nothing.
func TestInvalidCalls(t *testing.T) {
	w := newFixture(t)
	for _, args := range [][]string{nil, {"bash"}, {"bash", "squeue"}, {"bash", "", "", ""}, {"bash", "squeue", " ", "9"}, {"zsh"}, {"zsh", "squeue"}, {"tcsh", "squeue", ""},
		{"fish", "", ""}, {"zsh", "berth", ""}, {"zsh", "/usr/bin/nosuch", "-"}, {"bash", "A=1 B=2", " =", "9"}, {"zsh", "berth", "--kubeconfig", "x", "squeue", "-p", ""}} {
		if got := w.run(args...); offers(got+"\n") != "" && !strings.HasPrefix(got, "berth") {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := offers(w.run("bash", "A=1 squeue --no-conv", " =", "9")); got != "" {
		t.Errorf("%q", got)
	}
	if got := offers(w.run("bash", "A=1 squeue --noconv", " =", "9")); got != "--noconvert" {
		t.Errorf("%q", got)
	}
}

func TestGRESNames(t *testing.T) {
	for text, want := range map[string]string{"": "", "gpu:4": "gpu", "gpu:a100:4(S:0-1),fpga:1": "gpu gpu:a100 fpga", "gpu:a100:2,gpu:h100:2": "gpu gpu:a100 gpu:h100"} {
		if got := strings.Join(gresNames(text), " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
