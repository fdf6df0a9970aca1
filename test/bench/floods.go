package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The suite floods: one user sends as many requests as possible, of one kind after the
// other, while another user works. The client of the flood is a separate process
// (floodclient.go) with nice 19, so that the other user is affected by the service and
// not by the client.

var floodsMarks = marks{"<!-- floods: written by make bench-floods -->\n", "<!-- end of floods -->\n"}

const (
	floodQueue = 2000  // held jobs of the flooding user, before anything is measured
	floodPlan  = 10000 // pending jobs of the plans
)

// floodBench is a cluster with two users.
type floodBench struct {
	*system             // as root
	state   string      // the cluster's directory
	flood   floodUser   // who floods
	quiet   floodUser   // who works
	pid     int         // the cluster's process
	job     string      // a running job of the flooding user
	client  *apiClient  // as root
	results []*floodRow // one for each flood
	calm    calls       // all without a flood
}

type floodUser struct{ name, home string }

// calls are the times of the quiet user's commands, by command.
type calls map[string]samples

// floodRow is what one flood did.
type floodRow struct {
	name       string
	before     calls // just before it
	during     calls
	calmGrowth int64 // of the process's memory while only the quiet user worked, bytes
	growth     int64 // of the process's memory during the flood
	calmHeap   int64 // growth of its live heap while only the quiet user worked
	heap       int64 // growth of its live heap during the flood
	requests   string
}

func benchFloods(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return errors.New("the suite floods needs root: its users are users of this machine")
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil { //nolint:gosec // the users go through it
		return err
	}
	load := firstField("/proc/loadavg")
	b := &floodBench{state: filepath.Join(work, "berth-state"), calm: calls{}}
	for _, u := range []struct {
		of   *floodUser
		name string
	}{{&b.flood, "berthflood"}, {&b.quiet, "berthquiet"}} {
		remove, err := makeUser(u.of, u.name)
		if err != nil {
			return err
		}
		defer remove()
	}
	what := &suite{
		up:  []string{"--nodes=4", "--cpus=4", "--memory=4000M", "--user", b.flood.name, "--user", b.quiet.name},
		ups: 1,
	}
	if b.system, _, err = startBerth(ctx, what, bin, work); b.system != nil {
		defer b.stop()
	}
	if err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, kind := range floodKinds {
		if o.only != "" && !strings.Contains(kind.name, o.only) {
			continue
		}
		if err := b.measure(ctx, kind, o.repeat); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	plans, err := b.plans(ctx)
	if err != nil {
		return err
	}
	text := b.table() + plans + circumstances(load)
	return floodsMarks.publish(o.page, text)
}

// makeUser creates a user of the machine for the duration of the run.
func makeUser(u *floodUser, name string) (remove func(), err error) {
	u.name = name + strconv.Itoa(os.Getpid()%10000)
	if out, err := exec.Command("useradd", "--create-home", "--shell", "/bin/bash",
		u.name).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("useradd: %w: %s", err, out)
	}
	remove = func() { _ = exec.Command("userdel", "--remove", "--force", u.name).Run() }
	found, err := user.Lookup(u.name)
	if err != nil {
		remove()
		return nil, err
	}
	u.home = found.HomeDir
	return remove, nil
}

// as runs a command as the user, in its home.
func (b *floodBench) as(ctx context.Context, u floodUser, args ...string) (string, error) {
	uid, err := user.Lookup(u.name)
	if err != nil {
		return "", err
	}
	id, err := strconv.ParseUint(uid.Uid, 10, 32)
	if err != nil {
		return "", err
	}
	gid, err := strconv.ParseUint(uid.Gid, 10, 32)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, args[0]), args[1:]...)
	cmd.Dir = u.home
	cmd.Env = []string{
		"HOME=" + u.home, "USER=" + u.name, "LOGNAME=" + u.name, "PATH=" + b.bin + ":/usr/bin:/bin", "LANG=C.UTF-8",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(gid)}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func (u floodUser) kubeconfig() string {
	return filepath.Join(u.home, ".local/state/berth/user.kubeconfig")
}

// prepare finds the process, fills the queue and starts the job to attach to.
func (b *floodBench) prepare(ctx context.Context) error {
	var err error
	if b.pid, err = processOf(b.state); err != nil {
		return err
	}
	if b.client, err = newAPIClient(filepath.Join(b.state, "kubeconfig")); err != nil {
		return err
	}
	say("filling the queue with %d held jobs", floodQueue)
	if err := b.client.fill(ctx, b.flood.name, floodQueue, true); err != nil {
		return err
	}
	b.job, err = b.as(ctx, b.flood, "sbatch", "--parsable", "-n1", "--mem=10", "-o", "/dev/null", "--wrap",
		"sleep 3600")
	if err != nil {
		return err
	}
	return until(ctx, patience, 50*time.Millisecond, func() (bool, error) {
		state, err := b.as(ctx, b.quiet, "squeue", "-h", "-j", b.job, "-o", "%T")
		return state == "RUNNING", err
	})
}

// measure times the quiet user's commands without and with the flood, in turns.
func (b *floodBench) measure(ctx context.Context, kind floodKind, n int) error {
	r := &floodRow{name: kind.name, before: calls{}, during: calls{}}
	b.results = append(b.results, r)
	say("%s: without", kind.name)
	start, err := b.client.heap(ctx)
	if err != nil {
		return err
	}
	grown := b.watchMemory(ctx)
	if err := b.work(ctx, n, r.before, b.calm); err != nil {
		return err
	}
	r.calmGrowth = grown()
	heap, err := b.client.heap(ctx)
	if err != nil {
		return err
	}
	r.calmHeap = heap - start
	say("%s: with", kind.name)
	stop, err := b.startFlood(ctx, kind)
	if err != nil {
		return err
	}
	grown = b.watchMemory(ctx)
	workErr := b.work(ctx, n, r.during)
	r.growth = grown()
	after, err := b.client.heap(ctx)
	r.heap = after - heap
	r.requests = stop()
	say("%s: squeue p99 %s (%s before), memory %+d MB (%+d), live heap %+d MB (%+d), %s", kind.name,
		short(p99(r.during["squeue"])), short(p99(r.before["squeue"])), r.growth>>20, r.calmGrowth>>20, r.heap>>20,
		r.calmHeap>>20, r.requests)
	if kind.clean {
		if _, err := b.as(ctx, b.flood, "scancel", "-n", floodJobName); err != nil {
			say("%s: %v", kind.name, err)
		}
	}
	return errors.Join(workErr, err)
}

// work runs each of the quiet user's commands: squeue and sbatch n times, srun
// a third as often, which takes longer.
func (b *floodBench) work(ctx context.Context, n int, into ...calls) error {
	// Work that the previous flood has left is finished first.
	if err := settled(ctx); err != nil {
		return err
	}
	for i := range n {
		commands := map[string][]string{
			"squeue": {"squeue", "--me"},
			"sbatch": {"sbatch", "--hold", "-o", "/dev/null", "--wrap", "true"},
		}
		if i%3 == 0 {
			commands["srun"] = []string{"srun", "-n1", "--mem=10", "true"}
		}
		for name, args := range commands {
			start := time.Now()
			if _, err := b.as(ctx, b.quiet, args...); err != nil {
				return err
			}
			for _, c := range into {
				c[name] = append(c[name], time.Since(start))
			}
		}
	}
	_, err := b.as(ctx, b.quiet, "scancel", "-u", b.quiet.name)
	return err
}

// settled waits a second.
func settled(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startFlood starts the client of the flood with the lowest priority; stop ends it and
// returns its counts.
func (b *floodBench) startFlood(ctx context.Context, kind floodKind) (stop func() string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// With autogroups (sched(7)) the nice value that counts is that of the session.
	const lowest = `{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"`
	cmd := exec.CommandContext(ctx, "sh", "-c", lowest, "sh", self, "-suite=flood-client", "-only="+kind.name,
		b.flood.kubeconfig(), b.flood.name, b.job)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := settled(ctx); err != nil {
		return nil, err
	}
	return sync.OnceValue(func() string {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it ends by the signal, or late
		return strings.TrimSpace(out.String())
	}), nil
}

// watchMemory follows the resident memory of the cluster's process; the returned
// function stops that and returns the largest growth.
func (b *floodBench) watchMemory(ctx context.Context) (grown func() int64) {
	first := residentOf(b.pid)
	most := first
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			most = max(most, residentOf(b.pid))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() int64 { cancel(); <-done; return most - first }
}

// residentOf is the VmRSS of a process, in bytes.
func residentOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kib << 10
}

// p99 is the time that one of a hundred calls takes longer than.
func p99(s samples) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(sorted)-1, len(sorted)*99/100)]
}

// table returns the results, a row for each flood.
func (b *floodBench) table() string {
	var t strings.Builder
	t.WriteString("| one user's flood | `squeue --me` | `sbatch` | `srun true` | memory | live heap | the flood's answers |\n|---|---|---|---|---|---|---|\n")
	both := func(s samples) string { return short(s.median()) + " / " + short(p99(s)) }
	fmt.Fprintf(&t, "| none | %s | %s | %s | %s | %s | |\n", both(b.calm["squeue"]), both(b.calm["sbatch"]),
		both(b.calm["srun"]), b.megabytes(func(r *floodRow) int64 { return r.calmGrowth }),
		b.megabytes(func(r *floodRow) int64 { return r.calmHeap }))
	for _, r := range b.results {
		cell := func(name string) string {
			d := r.during[name]
			return fmt.Sprintf("%s (%.1f)", both(d), float64(p99(d))/float64(max(1, p99(b.calm[name]))))
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %+d MB | %+d MB | %s |\n", r.name, cell("squeue"), cell("sbatch"),
			cell("srun"),
			r.growth>>20, r.heap>>20, r.requests)
	}
	return t.String()
}

// megabytes lists a growth of each row, in MB.
func (b *floodBench) megabytes(growth func(*floodRow) int64) string {
	var all []string
	for _, r := range b.results {
		all = append(all, fmt.Sprintf("%+d", growth(r)>>20))
	}
	return strings.Join(all, ", ") + " MB"
}
