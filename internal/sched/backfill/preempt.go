package backfill

import (
	"maps"
	"slices"
)

// Victims chooses whom to end so that j can start at Now: running jobs out of
// candidates, which come in the order in which they are to go. nil: even
// without all of them it could not, or it needs nobody to go. The fewest of the
// order that will do are taken, and of them those that turn out not to be
// needed stay.
func (s *Snapshot) Victims(j *Job, candidates []int64) []int64 {
	if len(candidates) == 0 {
		return nil
	}
	t := s.newTrial(j)
	if t.fits(nil) || !t.fits(candidates) {
		return nil
	}
	few, enough := 0, len(candidates) // few are too few
	for few+1 < enough {
		if mid := (few + enough) / 2; t.fits(candidates[:mid]) {
			enough = mid
		} else {
			few = mid
		}
	}
	victims := slices.Clone(candidates[:enough])
	// The most important is spared first.
	for i := enough - 1; i >= max(0, enough-mostSpared); i-- {
		if fewer := slices.Delete(slices.Clone(victims), i, i+1); t.fits(fewer) {
			victims = fewer
		}
	}
	if len(victims) == 0 {
		return nil
	}
	return victims
}

// mostSpared bounds how many victims are looked at once more.
const mostSpared = 64

// trial answers whether a job would start now, if it were the only one that
// waits and some running jobs were gone.
type trial struct {
	s       *Snapshot
	j       Job
	queue   *Queue // nil where none decides as a plan does
	runs    map[int64]*Running
	removed map[int64]bool // not in queue
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

// fits tells it for these. One question costs what it differs by from the last.
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

// plan asks a plan of everything instead.
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

// Victims is Snapshot.Preempt at now for a waiting job of the queue, beside whom
// others have just started; nil as well for one that may not start.
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
