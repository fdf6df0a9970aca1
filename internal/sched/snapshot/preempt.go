package snapshot

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// Modes of preemption that are carried out (slurm.conf(5), PreemptMode).
const (
	ModeCancel  = "CANCEL"
	ModeRequeue = "REQUEUE"
)

// Victim is a job that is to make room.
type Victim struct {
	Job   *v1alpha1.BatchJob
	Mode  string
	Grace time.Duration
}

// preempting is the rule by which jobs preempt others; "" is none.
func (v *View) preempting() string {
	t := strings.TrimPrefix(strings.ToLower(v.params.PreemptType), "preempt/")
	if t == "qos" || t == "partition_prio" {
		return t
	}
	return ""
}

// aheadOfAll is the planner's priority of a job for which others make room:
// nobody starts there before it.
const aheadOfAll = math.MaxInt64 / 2

// Expected are the waiting jobs for which running ones make room now.
func (v *View) Expected(id int64) bool { return v.expected[id] }

// addExpected notes for whom running jobs make room, and for whom they have
// just made it.
func (v *View) addExpected(chosen map[int64]bool) {
	v.expected = map[int64]bool{}
	for id := range chosen {
		v.expected[id] = true
	}
	for i := range v.Running {
		if p := v.jobs[v.Running[i].ID].Status.Preempt; p != nil {
			v.expected[p.By] = true
		}
	}
}

// Victims are whom a waiting job may preempt so that it can start now, given
// what the plan has started; none where it may not, or where it would not help.
func (v *View) Victims(id int64, started []backfill.Running) []Victim {
	at := slices.IndexFunc(v.Pending, func(j backfill.Job) bool { return j.ID == id })
	if at < 0 || v.Pending[at].Blocked != "" || v.Pending[at].Begin > v.Now {
		return nil
	}
	running := func(yield func(int64) bool) {
		for i := range v.Running {
			if !yield(v.Running[i].ID) {
				return
			}
		}
	}
	return v.victims(id, running, func(candidates []int64) []int64 {
		s := v.Snapshot
		s.Running = slices.Concat(v.Running, started)
		return s.Victims(&v.Pending[at], candidates)
	})
}

// victims are those that choose takes of the running jobs, by number.
func (v *View) victims(id int64, running iter.Seq[int64], choose func([]int64) []int64) []Victim {
	if v.preempting() == "" || v.expected[id] {
		return nil
	}
	candidates := v.candidates(v.jobs[id], running)
	ids := make([]int64, 0, len(candidates))
	by := map[int64]Victim{}
	for _, c := range candidates {
		ids = append(ids, c.Job.Spec.JobID)
		by[c.Job.Spec.JobID] = c
	}
	var out []Victim
	for _, id := range choose(ids) {
		out = append(out, by[id])
	}
	return out
}

// candidates are the running jobs that b may preempt, the least important and
// then the youngest first.
func (v *View) candidates(b *v1alpha1.BatchJob, running iter.Seq[int64]) []Victim {
	var out []Victim
	for id := range running {
		other := v.jobs[id]
		st := &other.Status
		if st.State != v1alpha1.StateRunning || st.Preempt != nil || st.StartTime == nil || other.Spec.Cancel != nil {
			continue
		}
		mode, grace, exempt, may := v.mayPreempt(b, other)
		if !may || v.Now-st.StartTime.Unix() < exempt {
			continue
		}
		out = append(out, Victim{Job: other, Mode: mode, Grace: grace})
	}
	slices.SortStableFunc(out, func(x, y Victim) int {
		return cmp.Or(cmp.Compare(v.importance(x.Job), v.importance(y.Job)),
			cmp.Compare(y.Job.Status.StartTime.UnixNano(), x.Job.Status.StartTime.UnixNano()))
	})
	return out
}

func (v *View) importance(b *v1alpha1.BatchJob) int64 {
	n := int64(0)
	if p := v.partition(b.Status.Partition); p != nil {
		n = int64(p.spec.PriorityTier) << 32
	}
	if q := v.qos[b.Spec.Job.QOS]; q != nil {
		n += q.Spec.Priority
	}
	return n
}

// mayPreempt tells whether b may preempt other, how, after what grace (it is
// warned at once), and how many seconds other must have run before.
func (v *View) mayPreempt(b, other *v1alpha1.BatchJob) (mode string, grace time.Duration, exempt int64, may bool) {
	exempt = int64(v.params.PreemptExemptTime)
	mode = v.params.PreemptMode
	var seconds int32
	switch v.preempting() {
	case "qos":
		mine, its := v.qos[b.Spec.Job.QOS], v.qos[other.Spec.Job.QOS]
		if mine == nil || its == nil || !slices.Contains(mine.Spec.Preempt, its.Name) {
			return "", 0, 0, false
		}
		seconds = its.Spec.GraceTime
		if its.Spec.PreemptMode != "" && !strings.EqualFold(its.Spec.PreemptMode, "cluster") {
			mode = its.Spec.PreemptMode
		}
		if its.Spec.PreemptExempt > 0 {
			exempt = int64(its.Spec.PreemptExempt)
		}
	default:
		mine, its := v.partition(b.Spec.Partition), v.partition(other.Status.Partition)
		if mine == nil || its == nil || max(1, mine.spec.PriorityTier) <= max(1, its.spec.PriorityTier) {
			return "", 0, 0, false
		}
		seconds = its.spec.GraceTime
		if its.spec.PreemptMode != "" {
			mode = its.spec.PreemptMode
		}
	}
	mode = strings.ToUpper(mode)
	return mode, time.Duration(seconds) * time.Second, exempt, mode == ModeCancel || mode == ModeRequeue
}

// Victims is View.Victims of what the Live has followed to.
func (l *Live) Victims(id int64, started []backfill.Running) []Victim {
	if b := l.jobs[id]; b == nil || !b.AwaitsStart() {
		return nil
	}
	return l.victims(id, slices.Values(slices.Sorted(maps.Keys(l.uses))), func(candidates []int64) []int64 {
		return l.queue.Victims(l.Now, id, candidates, started)
	})
}

// Expect tells for whom others make room or have made it, beside those whom the
// jobs themselves name. The next Follow sees to it.
func (l *Live) Expect(chosen map[int64]bool) { l.chosen = maps.Clone(chosen) }

// expect gives those that others make room for their place in the queue, and
// those that nobody does so for any more; their forms are others then.
func (l *Live) expect(again map[int64]bool) {
	now := maps.Clone(l.chosen)
	if now == nil {
		now = map[int64]bool{}
	}
	for _, by := range l.leaving {
		now[by] = true
	}
	for id := range now {
		again[id] = again[id] || !l.expected[id]
	}
	for id := range l.expected {
		again[id] = again[id] || !now[id]
	}
	maps.DeleteFunc(again, func(_ int64, changed bool) bool { return !changed })
	l.expected = now
}
