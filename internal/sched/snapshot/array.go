package snapshot

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// tasks splits the planner's form of a waiting job into what of an array may
// start and what may not, and adds that to the list. A job that has nothing to
// do with arrays stays as it is.
func (v *View) tasks(out []backfill.Job, one *backfill.Job, b *v1alpha1.BatchJob, w *Wanted) []backfill.Job {
	id := array.ID(b)
	if id == 0 {
		return append(out, *one)
	}
	room := v.room(id)
	if !array.Whole(b) {
		if one.Blocked == "" && room <= 0 {
			one.Blocked = backfill.ReasonArrayTaskLimit
		}
		return append(out, *one)
	}
	rest := array.Rest(b, v.queue.split[id])
	if len(rest) == 0 {
		return out
	}
	if one.Blocked != "" {
		return append(out, *one)
	}
	wait := func(reason string) {
		blocked := *one
		blocked.Blocked = reason
		out = append(out, blocked)
	}
	rest, unready := v.queue.corresponding(b, rest)
	// Tasks that wait by themselves, after a requeue, come first.
	room -= v.queue.waitingTasks(id)
	if n := min(len(rest), max(0, room)); n > 0 {
		one.Copies, w.Tasks = n, rest[:n]
		out = append(out, *one)
	}
	switch {
	case len(rest) > max(0, room):
		wait(backfill.ReasonArrayTaskLimit)
	case unready != "":
		wait(unready)
	}
	return out
}

// unlimitedTasks is more than any array has.
const unlimitedTasks = 1 << 30

// room is how many more tasks of the array may run (%N), or as a singleton.
func (v *View) room(id int64) int {
	whole := v.jobs[id]
	if whole == nil || whole.Spec.Job.Array == nil {
		return unlimitedTasks
	}
	most := int(whole.Spec.Job.Array.Max)
	if slices.ContainsFunc(whole.Spec.Job.Dependencies.Items, isSingleton) {
		most = 1
	}
	if most == 0 {
		return unlimitedTasks
	}
	if whole.HoldsAllocation() {
		most--
	}
	for _, t := range v.queue.split[id] {
		if t.HoldsAllocation() {
			most--
		}
	}
	return most
}

func isSingleton(d job.Dependency) bool { return d.Type == "singleton" }

// waitingTasks counts the tasks that were split off and could start by
// themselves.
func (q queue) waitingTasks(id int64) (n int) {
	for _, t := range q.split[id] {
		if t.AwaitsStart() && t.Spec.Job.Hold == "" && earliest(t) <= q.now && q.dependency(t) == "" {
			n++
		}
	}
	return n
}

// corresponding are the tasks of the array b whose counterparts let them start
// (aftercorr), and why the others wait.
func (q queue) corresponding(b *v1alpha1.BatchJob, rest array.Set) (ready array.Set, reason string) {
	if !byTask(&b.Spec.Job.Dependencies) {
		return rest, ""
	}
	ready = rest.Without(func(index int32) bool {
		r := q.dependencyOf(b, &index)
		if r != "" && (reason == "" || r == reasonDependency) {
			reason = r
		}
		return r != ""
	})
	return ready, reason
}
