package snapshot

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// queue answers questions about other jobs.
type queue struct {
	now  int64
	jobs map[int64]*v1alpha1.BatchJob
	// first is, by user and name, the lowest number that is not over; where some
	// job asks for it.
	first map[string]int64
	// split are the jobs split off one, tasks those of them that are tasks of an
	// array, by index; rest is filled when it is asked for.
	split map[int64][]*v1alpha1.BatchJob
	tasks map[int64]map[int32]*v1alpha1.BatchJob
	rest  map[int64]array.Set
}

// newQueue looks at the jobs, which ascend by number and are byID as well.
func newQueue(jobs []*v1alpha1.BatchJob, byID map[int64]*v1alpha1.BatchJob, now int64) queue {
	q := queue{
		now: now, jobs: byID, first: map[string]int64{},
		split: map[int64][]*v1alpha1.BatchJob{}, tasks: map[int64]map[int32]*v1alpha1.BatchJob{}, rest: map[int64]array.Set{},
	}
	singles := slices.ContainsFunc(jobs, func(j *v1alpha1.BatchJob) bool {
		return slices.ContainsFunc(j.Spec.Job.Dependencies.Items, isSingleton)
	})
	for _, j := range jobs {
		if singles && !j.IsFinal() {
			if k := singleton(j); q.first[k] == 0 {
				q.first[k] = leader(j)
			}
		}
		o, t := j.Spec.Origin, j.Spec.Task
		if o == nil {
			continue
		}
		q.split[o.JobID] = append(q.split[o.JobID], j)
		if t != nil {
			if q.tasks[o.JobID] == nil {
				q.tasks[o.JobID] = map[int32]*v1alpha1.BatchJob{}
			}
			q.tasks[o.JobID][t.Index] = j
		}
	}
	return q
}

// leader is the number of what j was split off from, else its own.
func leader(j *v1alpha1.BatchJob) int64 {
	if o := j.Spec.Origin; o != nil {
		return o.JobID
	}
	return j.Spec.JobID
}

func singleton(j *v1alpha1.BatchJob) string { return j.Spec.User + "\x00" + j.Spec.Job.Name }

func completed(j *v1alpha1.BatchJob) bool { return j.Status.State == v1alpha1.StateCompleted }

// outcome of one dependency.
type outcome int

const (
	unmet outcome = iota
	met
	never
)

// Why a job waits for others.
const (
	reasonDependency = "Dependency"
)

// dependency says whether b must wait for others, or would wait for ever. An
// array whose tasks wait for their counterparts is not held up as a whole.
func (q queue) dependency(b *v1alpha1.BatchJob) string {
	d := &b.Spec.Job.Dependencies
	if array.Whole(b) && byTask(d) {
		return ""
	}
	var index *int32
	if _, t, ok := array.Task(b); ok {
		index = &t.Index
	}
	return q.dependencyOf(b, index)
}

func byTask(d *job.Dependencies) bool {
	return slices.ContainsFunc(d.Items, func(d job.Dependency) bool { return d.Type == "aftercorr" })
}

// dependencyOf is dependency for one task of an array; index nil: for a job.
func (q queue) dependencyOf(b *v1alpha1.BatchJob, index *int32) string {
	d := &b.Spec.Job.Dependencies
	counts := [3]int{}
	for i := range d.Items {
		counts[q.outcome(b, &d.Items[i], index)]++
	}
	n := len(d.Items)
	switch {
	case counts[met] == n, d.Any && counts[met] > 0:
		return ""
	case counts[never] > 0 && !d.Any, counts[never] == n:
		return status.ReasonDependencyNeverSatisfied
	}
	return reasonDependency
}

// Outcomes tells what has become of each dependency of a waiting job; see
// control.Planned.
func (v *View) Outcomes(id int64) string {
	b := v.Job(id)
	var index *int32
	if _, t, ok := array.Task(b); ok {
		index = &t.Index
	}
	var out []byte
	for i := range b.Spec.Job.Dependencies.Items {
		out = append(out, "umn"[v.queue.outcome(b, &b.Spec.Job.Dependencies.Items[i], index)])
	}
	return string(out)
}

// outcome of one dependency. A job that is not known was over and gone before b
// came (the keeper keeps the jobs that others wait for), and then the
// dependency counts as met whatever its kind, as Slurm 22.05 does.
func (q queue) outcome(b *v1alpha1.BatchJob, d *job.Dependency, index *int32) outcome {
	if d.Type == "singleton" {
		return when(q.first[singleton(b)] == leader(b), unmet)
	}
	targets, failed := q.targets(d, index)
	if len(targets) == 0 {
		return met
	}
	over := !slices.ContainsFunc(targets, func(t *v1alpha1.BatchJob) bool { return !t.IsFinal() })
	failed = failed || slices.ContainsFunc(targets, func(t *v1alpha1.BatchJob) bool { return !completed(t) })
	switch d.Type {
	case "after":
		waits := func(t *v1alpha1.BatchJob) bool { return !q.started(t, d.Delay) }
		return when(!slices.ContainsFunc(targets, waits), unmet)
	case "afterany", "afterburstbuffer":
		return when(over, unmet)
	case "afterok", "aftercorr":
		if !over {
			return unmet
		}
		return when(!failed, never)
	case "afternotok":
		if !over {
			return unmet
		}
		return when(failed, never)
	}
	return unmet
}

// started tells whether t began to run, or was over without, so many minutes ago.
func (q queue) started(t *v1alpha1.BatchJob, delay int32) bool {
	at, known := startedBy(t, delay)
	return known && at <= q.now
}

// startedBy is when that is so; known is false as long as t waits.
func startedBy(t *v1alpha1.BatchJob, delay int32) (at int64, known bool) {
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

// DelayEnds is when the first delay is over (after:ID+N) that a waiting job's
// dependencies still hold it up by; 0: no delay runs.
func (v *View) DelayEnds(id int64) (first int64) {
	b := v.Job(id)
	var index *int32
	if _, t, ok := array.Task(b); ok {
		index = &t.Index
	}
	for i := range b.Spec.Job.Dependencies.Items {
		d := &b.Spec.Job.Dependencies.Items[i]
		if d.Type != "after" || d.Delay == 0 {
			continue
		}
		targets, _ := v.queue.targets(d, index)
		for _, t := range targets {
			if at, known := startedBy(t, d.Delay); known && at > v.Now && (first == 0 || at < first) {
				first = at
			}
		}
	}
	return first
}

// targets are the jobs that d names, for the task with that index of an array
// that waits; failed tells that one more of them is gone and did not complete.
// No target: there is nothing to wait for.
func (q queue) targets(d *job.Dependency, index *int32) (jobs []*v1alpha1.BatchJob, failed bool) {
	other := q.jobs[d.JobID]
	if other == nil {
		return nil, false
	}
	if other.Spec.Job.Array == nil {
		return append(q.components(other), other), false
	}
	want := d.Task
	if want == nil && d.Type == "aftercorr" {
		want = index
	}
	if want != nil {
		if one := q.target(other, *want); len(one) > 0 || d.Task != nil {
			return one, false
		}
		// Without a counterpart a task waits for all of them, as in Slurm.
	}
	s := other.Status.Array
	return append(slices.Clone(q.split[d.JobID]), other), s != nil && s.Failed
}

// components are those split off a heterogeneous job.
func (q queue) components(leader *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	return slices.Clone(q.split[leader.Spec.JobID])
}

// target is the job that one task of an array is, or the array itself while it
// stands for that task; nothing if there is no such task (any more).
func (q queue) target(whole *v1alpha1.BatchJob, index int32) []*v1alpha1.BatchJob {
	id := whole.Spec.JobID
	if t := q.tasks[id][index]; t != nil {
		return []*v1alpha1.BatchJob{t}
	}
	if !array.Whole(whole) {
		if *whole.Status.Array.Own == index {
			return []*v1alpha1.BatchJob{whole}
		}
		return nil
	}
	rest, known := q.rest[id]
	if !known {
		rest = array.Rest(whole, q.split[id])
		q.rest[id] = rest
	}
	if rest.Has(index) {
		return []*v1alpha1.BatchJob{whole}
	}
	return nil
}

func when(ok bool, otherwise outcome) outcome {
	if ok {
		return met
	}
	return otherwise
}
