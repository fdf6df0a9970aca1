package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// profileMarks are where the table stands that says where the processor time of one submission,
// one start and one end goes: in the commands, in the parts of the cluster's process, and in the
// jobs' own processes. Beside them it measures the floor, which is what the API server alone
// needs to create, to change and to delete an object of that size.
var profileMarks = marks{"<!-- profile: written by make bench-profile -->\n", "<!-- end of profile -->\n"}

const (
	profiledSubmissions = 3000
	profiledJobs        = 200
	profiledWrites      = 3000
	shortJobs           = 1000
	objectSize          = 2000 // bytes of a BatchJob in the store, about
)

// activity is something that is done many times while the cluster's process is profiled.
type activity struct {
	name    string
	times   int
	prepare func(ctx context.Context) error // not measured; nil: nothing
	// do returns the processor time of the commands that it has run.
	do func(ctx context.Context) (commands time.Duration, err error)
}

// cost is what one of an activity takes.
type cost struct {
	commands, jobs, cluster time.Duration
	parts                   map[string]float64 // shares of cluster
	requests                map[string]float64 // that the API server answered, by kind
}

type profileBench struct {
	*system
	api   *apiClient
	pid   int
	state string
	gate  string // a FIFO that the running jobs wait for
	keep  string // where the profiles are written, unless it is ""
}

func benchProfile(ctx context.Context, o options) error {
	busy := firstField("/proc/loadavg")
	s, state, stop, err := startAlone(ctx, o, "--nodes=4", "--cpus=64", "--memory=16000M")
	defer stop()
	if err != nil {
		return err
	}
	b := &profileBench{system: s, state: state, gate: filepath.Join(s.dir, "gate"), keep: o.profiles}
	if b.pid, err = processOf(state); err != nil {
		return err
	}
	if b.api, err = newAPIClient(filepath.Join(state, "kubeconfig")); err != nil {
		return err
	}
	if err := syscall.Mkfifo(b.gate, 0o600); err != nil {
		return err
	}
	t := &profileTable{}
	for _, a := range b.activities() {
		say("%s, %d times", a.name, a.times)
		c, err := b.measure(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		t.add(a, c)
	}
	return profileMarks.publish(o.page, t.markdown()+circumstances(busy))
}

func (b *profileBench) activities() []activity {
	return []activity{
		{"an object created", profiledWrites, nil, b.writes(http.MethodPost)},
		{"changed", profiledWrites, nil, b.writes(http.MethodPut)},
		{"deleted", profiledWrites, nil, b.writes(http.MethodDelete)},
		{"a submission", profiledSubmissions, nil, b.submit},
		{"a start", profiledJobs, b.waitingForGate, b.startJobs},
		{"an end", profiledJobs, nil, b.endJobs},
		{"a short job in a pod that others use too", shortJobs, b.shortJobsWait, b.runShortJobs},
	}
}

// measure does an activity, waits until the cluster is at rest again, and returns what one
// of them took.
func (b *profileBench) measure(ctx context.Context, a activity) (cost, error) {
	if a.prepare != nil {
		if err := a.prepare(ctx); err != nil {
			return cost{}, err
		}
	}
	if err := b.rest(ctx); err != nil {
		return cost{}, err
	}
	before, err := b.api.requests(ctx)
	if err != nil {
		return cost{}, err
	}
	profiling := b.profile(ctx, a.name)
	cluster, jobs := processTime(b.pid), treeTime(b.pid)
	commands, err := a.do(ctx)
	if err == nil {
		err = b.rest(ctx)
	}
	c := cost{commands: commands, cluster: processTime(b.pid) - cluster, jobs: treeTime(b.pid) - jobs}
	parts, profileErr := profiling()
	if err := errors.Join(err, profileErr); err != nil {
		return cost{}, err
	}
	after, err := b.api.requests(ctx)
	if err != nil {
		return cost{}, err
	}
	n := time.Duration(a.times)
	for kind := range after {
		after[kind] = (after[kind] - before[kind]) / float64(n)
	}
	return cost{c.commands / n, c.jobs / n, c.cluster / n, parts, after}, nil
}

// rest waits until the cluster's process and its jobs need nearly no processor time.
func (b *profileBench) rest(ctx context.Context) error {
	last := processTime(b.pid)
	return until(ctx, 2*time.Minute, time.Second, func() (bool, error) {
		used := processTime(b.pid) - last
		last += used
		return used > 0 && used < 150*time.Millisecond, nil
	})
}

// writes sends requests for as many ConfigMaps, each as large as a BatchJob in the store.
func (b *profileBench) writes(method string) func(context.Context) (time.Duration, error) {
	const maps = "/api/v1/namespaces/default/configmaps"
	return func(ctx context.Context) (time.Duration, error) {
		return 0, eightAtATime(profiledWrites, func(i int) error {
			name := fmt.Sprintf("floor-%d", i)
			path, body := maps+"/"+name, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap",`+
				`"metadata":{"name":%q},"data":{"method":%q,"text":%q}}`, name, method, strings.Repeat("x", objectSize))
			switch method {
			case http.MethodPost:
				path = maps
			case http.MethodDelete:
				body = nil
			}
			code, err := b.api.do(ctx, method, path, body)
			return errors.Join(err, errUnless(code < 300, fmt.Sprintf("%s of %s was answered %d", method, name, code)))
		})
	}
}

// submit submits jobs that do not start.
func (b *profileBench) submit(ctx context.Context) (time.Duration, error) {
	return b.sbatch(ctx, profiledSubmissions, "--hold", "-J", "submitted", "--wrap", "true")
}

// waitingForGate submits the jobs that startJobs starts. Each ends when the gate is opened.
func (b *profileBench) waitingForGate(ctx context.Context) error {
	return b.whileDown(ctx, profiledJobs, "-J", "gated", "-n1", "--mem=10", "--wrap", ": <"+b.gate)
}

// whileDown submits jobs that start when the partition is up.
func (b *profileBench) whileDown(ctx context.Context, jobs int, args ...string) error {
	if err := b.setPartition(ctx, "DOWN"); err != nil {
		return err
	}
	_, err := b.sbatch(ctx, jobs, args...)
	return err
}

// setPartition sets the state of the default partition.
func (s *system) setPartition(ctx context.Context, state string) error {
	names, err := s.output(ctx, "sinfo", "-h", "-o", "%P")
	if err != nil {
		return err
	}
	for name := range strings.Lines(names) {
		if name, isDefault := strings.CutSuffix(strings.TrimSpace(name), "*"); isDefault {
			_, err := s.output(ctx, "scontrol", "update", "PartitionName="+name, "State="+state)
			return err
		}
	}
	return errors.New("there is no default partition")
}

// sbatch submits jobs and returns the processor time of the commands.
func (b *profileBench) sbatch(ctx context.Context, jobs int, args ...string) (time.Duration, error) {
	var used atomic.Int64
	err := eightAtATime(jobs, func(int) error {
		cmd := b.command(ctx, "sbatch", append([]string{"-o", "/dev/null"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("sbatch: %w: %s", err, out)
		}
		used.Add(int64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()))
		return nil
	})
	return time.Duration(used.Load()), err
}

func (b *profileBench) startJobs(ctx context.Context) (time.Duration, error) {
	if err := b.setPartition(ctx, "UP"); err != nil {
		return 0, err
	}
	return 0, until(ctx, 5*time.Minute, time.Second, func() (bool, error) {
		running, err := b.output(ctx, "squeue", "-h", "-n", "gated", "-t", "R", "-o", "%i")
		return len(strings.Fields(running)) == profiledJobs, err
	})
}

func (b *profileBench) endJobs(ctx context.Context) (time.Duration, error) {
	return 0, until(ctx, 5*time.Minute, time.Second, func() (bool, error) {
		// A job that waits for a writer sees one, and then the end of the file.
		gate, err := os.OpenFile(b.gate, os.O_RDWR, 0)
		if err != nil {
			return false, err
		}
		if err := gate.Close(); err != nil {
			return false, err
		}
		left, err := b.output(ctx, "squeue", "-h", "-n", "gated", "-o", "%i")
		return left == "", err
	})
}

// shortJobsWait submits the jobs that runShortJobs runs, many more than there are CPUs.
func (b *profileBench) shortJobsWait(ctx context.Context) error {
	return b.whileDown(ctx, shortJobs, "-J", "short", "-n1", "--mem=10", "-c", "16", "--wrap", "true")
}

func (b *profileBench) runShortJobs(ctx context.Context) (time.Duration, error) {
	if err := b.setPartition(ctx, "UP"); err != nil {
		return 0, err
	}
	return 0, until(ctx, 5*time.Minute, time.Second, func() (bool, error) {
		left, err := b.output(ctx, "squeue", "-h", "-n", "short", "-o", "%i")
		return left == "", err
	})
}

// eightAtATime calls f with each number below n.
func eightAtATime(n int, f func(i int) error) error {
	var (
		next atomic.Int64
		wg   sync.WaitGroup
		errs [submitters]error
	)
	for w := range submitters {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}
