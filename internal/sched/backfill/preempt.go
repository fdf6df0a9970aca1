package backfill

import (
	"maps"
	"slices"
)

// Victims returns the jobs, among the running jobs candidates in preemption order, that
// must end for j to start at Now. It returns nil if j can start without preemption, or
// cannot start even if all candidates end. It takes the shortest sufficient prefix of
// candidates, and reprieves those that are not needed.
func (s *Snapshot) Victims(j *Job, candidates []int64) []int64 {
	if len(candidates) == 0 {
		return nil
	}
	t := s.newTrial(j)
	if t.fits(nil) || !t.fits(candidates) {
		return nil
	}
	few, enough := 0, len(candidates) // few victims do not suffice, enough do
	for few+1 < enough {
		if mid := (few + enough) / 2; t.fits(candidates[:mid]) {
			enough = mid
		} else {
			few = mid
		}
	}
	victims := slices.Clone(candidates[:enough])
	// The most important victim is reprieved first.
	for i := enough - 1; i >= max(0, enough-maxReprieves); i-- {
		if fewer := slices.Delete(slices.Clone(victims), i, i+1); t.fits(fewer) {
			victims = fewer
		}
	}
	if len(victims) == 0 {
		return nil
	}
	return victims
}

// maxReprieves is the maximum number of victims for which a reprieve is tried.
const maxReprieves = 64

// trial tests whether a job would start now if it were the only pending job and
// some running jobs had ended.
type trial struct {
	s       *Snapshot
	j       Job
	queue   *Queue // nil if Snapshot.Incremental is false
	runs    map[int64]*Running
	removed map[int64]bool // running jobs that were removed from queue
}

func (s *Snapshot) newTrial(j *Job) *trial {
	t := &trial{s: s, j: *j, runs: make(map[int64]*Running, len(s.Running)), removed: map[int64]bool{}}
	t.j.Copies = 0
	if !s.Incremental() {
		return t
	}
	for i := range s.Running {
		t.runs[s.Running[i].ID] = &s.Running[i]
	}
	one := *s
	one.Pending = []Job{t.j}
	t.queue = NewQueue(&one)
	return t
}

// fits reports whether the job would start if the running jobs gone had ended. Its cost is
// proportional to the difference from the list of the last call.
func (t *trial) fits(gone []int64) bool {
	if t.queue == nil {
		return t.plan(gone)
	}
	without := make(map[int64]bool, len(gone))
	for _, id := range gone {
		if without[id] = true; !t.removed[id] {
			t.queue.End(id)
		}
	}
	for id := range t.removed {
		if r := t.runs[id]; r != nil && !without[id] {
			t.queue.Start(r)
		}
	}
	t.removed = without
	return len(t.queue.Decide(t.s.Now)) > 0
}

// plan is fits with a full plan.
func (t *trial) plan(gone []int64) bool {
	one := *t.s
	one.Running = make([]Running, 0, len(t.s.Running))
	for i := range t.s.Running {
		if !slices.Contains(gone, t.s.Running[i].ID) {
			one.Running = append(one.Running, t.s.Running[i])
		}
	}
	one.Pending = []Job{t.j}
	return slices.ContainsFunc(one.Plan().Decisions, func(d Decision) bool { return d.StartNow })
}

// Victims is Snapshot.Victims at now for a pending job of the queue, while the
// jobs of started have just started. It returns nil for a job that must not
// start yet.
func (q *Queue) Victims(now, id int64, candidates []int64, started []Running) []int64 {
	if w := q.jobsByID[id]; len(w) == 0 || w[0].Blocked != "" || w[0].Begin > now {
		return nil
	}
	s := q.base
	s.Now, s.Running = now, slices.Clone(started)
	for _, id := range slices.Sorted(maps.Keys(q.running)) {
		s.Running = append(s.Running, *q.running[id])
	}
	return s.Victims(q.jobsByID[id][0], candidates)
}
