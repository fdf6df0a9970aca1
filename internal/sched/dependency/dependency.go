package dependency

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// outcome is what has become of one dependency.
type outcome int

const (
	unmet outcome = iota
	met
	neverMet
)

// Reason returns why b must wait for others, or "". An array whose tasks wait for
// their counterparts does not wait as a whole; see ReadyTasks.
func (x *Index) Reason(b *v1alpha1.BatchJob) string {
	if array.Whole(b) && hasAfterCorr(&b.Spec.Job.Dependencies) {
		return ""
	}
	return x.reason(b, taskIndex(b))
}

// taskIndex returns the index of b in its array; nil if b is no task.
func taskIndex(b *v1alpha1.BatchJob) *int32 {
	if _, t, ok := array.Task(b); ok {
		return &t.Index
	}
	return nil
}

func hasAfterCorr(d *job.Dependencies) bool {
	return slices.ContainsFunc(d.Items, func(d job.Dependency) bool { return d.Type == "aftercorr" })
}

// reason returns why the task of b with the index, or b itself if index is nil,
// must wait for others.
func (x *Index) reason(b *v1alpha1.BatchJob, index *int32) string {
	d := &b.Spec.Job.Dependencies
	counts := [3]int{}
	for i := range d.Items {
		counts[x.outcome(b, &d.Items[i], index)]++
	}
	n := len(d.Items)
	switch {
	case counts[met] == n, d.Any && counts[met] > 0:
		return ""
	case counts[neverMet] > 0 && !d.Any, counts[neverMet] == n:
		return status.ReasonDependencyNeverSatisfied
	}
	return status.ReasonDependency
}

// ReadyTasks returns those of an array's tasks whose counterparts in another
// array (aftercorr) let them start, and why the others wait.
func (x *Index) ReadyTasks(b *v1alpha1.BatchJob, tasks array.Set) (ready array.Set, reason string) {
	if !hasAfterCorr(&b.Spec.Job.Dependencies) {
		return tasks, ""
	}
	ready = tasks.Without(func(index int32) bool {
		r := x.reason(b, &index)
		if r != "" && (reason == "" || r == status.ReasonDependency) {
			reason = r
		}
		return r != ""
	})
	return ready, reason
}

// Outcomes returns a letter for each dependency of a pending job: m if it is met,
// u if not yet, n if it never will be; see control.Planned.
func (x *Index) Outcomes(b *v1alpha1.BatchJob) string {
	index := taskIndex(b)
	var out []byte
	for i := range b.Spec.Job.Dependencies.Items {
		out = append(out, "umn"[x.outcome(b, &b.Spec.Job.Dependencies.Items[i], index)])
	}
	return string(out)
}

// outcome evaluates one dependency. A job that is not in the index had ended and
// was deleted before b was submitted, because the keeper does not delete jobs
// that others wait for. Then the dependency is met, whatever its type, as in
// Slurm 22.05.
func (x *Index) outcome(b *v1alpha1.BatchJob, d *job.Dependency, index *int32) outcome {
	if IsSingleton(*d) {
		return metIf(x.leaders[SingletonKey(b)] == originID(b), unmet)
	}
	targets, failed := x.targets(d, index)
	if len(targets) == 0 {
		return met
	}
	final := !slices.ContainsFunc(targets, func(t *v1alpha1.BatchJob) bool { return !hasEnded(t) })
	failed = failed || slices.ContainsFunc(targets, func(t *v1alpha1.BatchJob) bool {
		return t.Status.State != v1alpha1.StateCompleted
	})
	switch d.Type {
	case "after":
		waits := func(t *v1alpha1.BatchJob) bool { return !x.startedBefore(t, d.Delay) }
		return metIf(!slices.ContainsFunc(targets, waits), unmet)
	case "afterany", "afterburstbuffer":
		return metIf(final, unmet)
	case "afterok", "aftercorr":
		if !final {
			return unmet
		}
		return metIf(!failed, neverMet)
	case "afternotok":
		if !final {
			return unmet
		}
		return metIf(failed, neverMet)
	}
	return unmet
}

// hasEnded reports whether the job is over. A job that ended while its requeue was requested
// is not: it is queued again, as in Slurm, where a requeue of a running job takes effect at
// once.
func hasEnded(t *v1alpha1.BatchJob) bool {
	return t.IsFinal() && (!t.RequeueRequested() || t.EndRequested())
}

func metIf(ok bool, otherwise outcome) outcome {
	if ok {
		return met
	}
	return otherwise
}

// startedBefore reports whether t started, or ended without having started, at
// least delay minutes ago.
func (x *Index) startedBefore(t *v1alpha1.BatchJob, delay int32) bool {
	at, known := delayEnd(t, delay)
	return known && at <= x.Now
}

// delayEnd returns the instant that is delay minutes after t started, or ended
// without having started. known is false while t is pending.
func delayEnd(t *v1alpha1.BatchJob, delay int32) (at int64, known bool) {
	from := t.Status.StartTime
	if from == nil && t.IsFinal() {
		if from = t.Status.EndTime; from == nil {
			return 0, true
		}
	}
	if from == nil {
		return 0, false
	}
	return from.Unix() + int64(delay)*60, true
}

// DelayEnd returns the end, in Unix seconds, of the first delay (after:ID+N) that
// a pending job waits for; 0 if it waits for none.
func (x *Index) DelayEnd(b *v1alpha1.BatchJob) (first int64) {
	index := taskIndex(b)
	for i := range b.Spec.Job.Dependencies.Items {
		d := &b.Spec.Job.Dependencies.Items[i]
		if d.Type != "after" || d.Delay == 0 {
			continue
		}
		targets, _ := x.targets(d, index)
		for _, t := range targets {
			if at, known := delayEnd(t, d.Delay); known && at > x.Now && (first == 0 || at < first) {
				first = at
			}
		}
	}
	return first
}

// targets returns the jobs that d refers to. index is that of the dependent task,
// nil for other jobs. failed reports that a task which did not complete has been
// deleted already. Without targets there is nothing to wait for.
func (x *Index) targets(d *job.Dependency, index *int32) (jobs []*v1alpha1.BatchJob, failed bool) {
	other := x.jobs[d.JobID]
	if other == nil {
		return nil, false
	}
	if other.Spec.Job.Array == nil { // with its components, if it is heterogeneous
		return append(slices.Clone(x.split[d.JobID]), other), false
	}
	task := d.Task
	if task == nil && d.Type == "aftercorr" {
		task = index
	}
	if task != nil {
		if one := x.task(other, *task); len(one) > 0 || d.Task != nil {
			return one, false
		}
		// A task without a counterpart waits for the whole array, as in Slurm.
	}
	s := other.Status.Array
	return append(slices.Clone(x.split[d.JobID]), other), s != nil && s.Failed
}

// task returns the job that runs one task of an array: one split off, or the
// array's own job while it stands for that task; none if the task does not exist
// (any more).
func (x *Index) task(whole *v1alpha1.BatchJob, index int32) []*v1alpha1.BatchJob {
	id := whole.Spec.JobID
	if t := x.tasks[id][index]; t != nil {
		return []*v1alpha1.BatchJob{t}
	}
	if !array.Whole(whole) {
		if *whole.Status.Array.Own == index {
			return []*v1alpha1.BatchJob{whole}
		}
		return nil
	}
	unsplit, known := x.unsplit[id]
	if !known {
		unsplit = array.Rest(whole, x.split[id])
		x.unsplit[id] = unsplit
	}
	if unsplit.Has(index) {
		return []*v1alpha1.BatchJob{whole}
	}
	return nil
}
