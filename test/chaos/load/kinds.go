package load

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/history"
)

// kind is something that a user may do next.
type kind struct {
	name   string
	weight int
	do     func(context.Context, *worker)
}

// kinds are chosen by their weights.
var kinds = []kind{
	{"plain", 24, func(_ context.Context, w *worker) { w.submit(w.job(), "") }},
	{"simulated", 20, func(_ context.Context, w *worker) { w.simulated() }},
	{"failing", 4, func(_ context.Context, w *worker) {
		j := w.job()
		j.ExitCode = 3
		w.submit(j, "")
	}},
	{"limit", 2, func(_ context.Context, w *worker) {
		j := w.job()
		if w.Quick {
			return
		}
		j.Limit, j.Run = time.Minute, time.Duration(w.random.IntN(100))*time.Second
		w.submit(j, "")
	}},
	{"steps", 6, func(_ context.Context, w *worker) {
		j := w.job()
		j.Nodes, j.Steps = 1+w.random.Int64N(2), true
		w.submit(j, "")
	}},
	{"gpus", 8, func(_ context.Context, w *worker) {
		j := w.job()
		j.CPUs, j.GPUs = 1, 1+w.random.Int64N(cluster.GPUsPerNode)
		w.submit(j, "")
	}},
	{"license", 6, func(_ context.Context, w *worker) {
		j := w.job()
		j.CPUs, j.License = 1, cluster.License
		w.submit(j, "")
	}},
	{"array", 6, func(_ context.Context, w *worker) { w.submit(w.array(), "") }},
	{"dependency", 10, func(_ context.Context, w *worker) { w.dependent() }},
	{"correlated", 2, func(_ context.Context, w *worker) {
		if on := w.recent(func(s *history.Submission) bool { return len(s.Job.Tasks) > 0 }); on != nil {
			j := w.array()
			j.Tasks, j.Dependency = on.Job.Tasks, history.Dependency{Kind: "aftercorr", On: on.ID}
			w.submit(j, "")
		}
	}},
	{"singleton", 5, func(_ context.Context, w *worker) {
		j := w.job()
		j.Singleton = true
		w.submit(j, "single-"+w.user.Name)
	}},
	{"begin", 4, func(_ context.Context, w *worker) {
		j := w.job()
		n := 1 + w.random.IntN(6)
		// sbatch counts from the second in which it runs.
		j.Begin = time.Now().Truncate(time.Second).Add(time.Duration(n) * time.Second)
		w.submit(j, "", fmt.Sprintf("--begin=now+%d", n))
	}},
	{"held", 4, func(ctx context.Context, w *worker) {
		j := w.job()
		j.Held = true
		before := len(w.jobs)
		if w.submit(j, ""); len(w.jobs) > before {
			w.after(ctx, "release", w.user, w.jobs[before].ID, 3)
		}
	}},
	{"het", 3, func(_ context.Context, w *worker) {
		j := w.job()
		j.CPUs, j.Components = 1, 2
		w.submit(j, "", "-n1", ":", "-n1")
	}},
	{"srun", 3, func(_ context.Context, w *worker) { w.interactive("srun") }},
	{"salloc", 2, func(_ context.Context, w *worker) { w.interactive("salloc") }},
	{"cancel", 5, func(ctx context.Context, w *worker) {
		if s := w.recent(nil); s != nil {
			w.operate(ctx, "cancel", w.user, s.ID)
		}
	}},
	{"requeue", 5, func(ctx context.Context, w *worker) {
		if s := w.recent(single); s != nil {
			w.operate(ctx, "requeue", w.user, s.ID)
		}
	}},
	{"hold", 4, func(ctx context.Context, w *worker) {
		if s := w.recent(single); s != nil {
			w.hold(ctx, s.ID)
		}
	}},
	{"suspend", 3, func(ctx context.Context, w *worker) {
		if s := w.recent(single); s != nil && w.operate(ctx, "suspend", w.Cluster.Operator, s.ID).Exit == 0 {
			w.after(ctx, "resume", w.Cluster.Operator, s.ID, 3)
		}
	}},
	{"update", 3, func(ctx context.Context, w *worker) {
		if s := w.recent(nil); s != nil {
			w.operate(ctx, "update", w.user, s.ID, "Comment="+w.name, "Nice="+strconv.Itoa(w.random.IntN(100)))
		}
	}},
	{"queries", 6, func(ctx context.Context, w *worker) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		w.Cluster.Run(ctx, w.user, "squeue")
		w.Cluster.Run(ctx, w.user, "sacct")
	}},
}

// job returns a small job.
func (w *worker) job() history.Job {
	return history.Job{Nodes: 1, CPUs: 1 + w.random.Int64N(3),
		Run: time.Duration(100+w.random.IntN(2500)) * time.Millisecond}
}

// simulated submits a job, or an array, to the simulated nodes, if there are any.
func (w *worker) simulated() {
	if w.Cluster.Simulated == 0 {
		return
	}
	j := w.job()
	if w.random.IntN(4) == 0 {
		j = w.array()
		for range 20 {
			j.Tasks = append(j.Tasks, len(j.Tasks)+1)
		}
	} else if w.random.IntN(2) == 0 {
		j.Nodes = 1 + w.random.Int64N(int64(min(16, w.Cluster.Simulated)))
	}
	w.submit(j, "", "-p", cluster.SimPartition, "-x", w.Cluster.RealNodes())
}

func (w *worker) array() history.Job {
	j := w.job()
	j.CPUs = 1
	for i := range 2 + w.random.IntN(4) {
		j.Tasks = append(j.Tasks, i+1)
	}
	if w.random.IntN(2) == 0 {
		j.Throttle = 1 + w.random.IntN(2)
	}
	return j
}

// single reports whether the submission is one job with a script.
func single(s *history.Submission) bool { return len(s.Job.Tasks) == 0 && s.Job.Components == 0 }

// recent returns one of the last accepted jobs for which ok is true, or nil; ok nil is
// always true.
func (w *worker) recent(ok func(*history.Submission) bool) *history.Submission {
	last := w.jobs[max(0, len(w.jobs)-8):]
	for range len(last) {
		if s := last[w.random.IntN(len(last))]; ok == nil || ok(s) {
			return s
		}
	}
	return nil
}

// dependent submits a job that depends on a recent one.
func (w *worker) dependent() {
	on := w.recent(single)
	if on == nil {
		return
	}
	names := []string{"after", "afterany", "afterok", "afternotok"}
	j := w.job()
	j.Dependency = history.Dependency{Kind: names[w.random.IntN(len(names))], On: on.ID}
	w.submit(j, "")
}

// interactive runs srun or salloc from outside of a job.
func (w *worker) interactive(command string) {
	j := w.job()
	j.Interactive, j.CPUs = true, 1
	w.count++
	name := fmt.Sprintf("%s-%d", w.name, w.count)
	args := []string{"-J", name, "-N1", "-n1", "--mem=10"}
	if command == "salloc" {
		args = append(args, "srun")
	} else {
		args = append(args, "-v")
	}
	args = append(args, scriptArgs(&j)...)
	for i, a := range args {
		if a == "chaos.sh" {
			args[i] = "./chaos.sh"
		}
	}
	w.record(j, name, command, args)
}

// operate runs a command about a job.
func (w *worker) operate(ctx context.Context, verb string, u cluster.User, job int64, more ...string) cluster.Answer {
	id := strconv.FormatInt(job, 10)
	args := []string{"scontrol", verb, id}
	switch verb {
	case "cancel":
		args = []string{"scancel", id}
	case "update":
		args = append([]string{"scontrol", "update", "JobId=" + id}, more...)
	}
	return w.Operate(ctx, u, verb, job, args...)
}

// after repeats the command after at most that many seconds, also when the run has ended,
// until it is answered.
func (w *worker) after(ctx context.Context, verb string, u cluster.User, job int64, seconds int) {
	pause := time.Duration(w.random.IntN(1000*seconds)) * time.Millisecond
	ctx = context.WithoutCancel(ctx)
	w.later.Go(func() {
		time.Sleep(pause)
		for range 3 {
			if w.operate(ctx, verb, u, job).Exit == 0 {
				return
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// hold holds a job, notes whether it is pending, and releases it later.
func (w *worker) hold(ctx context.Context, job int64) {
	if w.operate(ctx, "hold", w.user, job).Exit != 0 {
		return
	}
	quick, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := w.Cluster.Run(quick, w.user, "squeue", "-h", "-o", "%T", "-j", strconv.FormatInt(job, 10))
	w.mu.Lock()
	w.history.Sightings = append(w.history.Sightings, history.Sighting{Job: job, Call: a.Call, Return: a.Return,
		State: a.Out})
	w.mu.Unlock()
	w.after(ctx, "release", w.user, job, 4)
}
