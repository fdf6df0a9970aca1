package keeper

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A thousand jobs may be placed at once, and the controllers make pods of some
// ten JobSets a second. Those whose objects are not made yet wait in line, holding
// their places: objects made all at once would have most of them give up their
// places before their turn, and begin anew.

// mostStarting is how many placed jobs may have objects and not all of their
// pods bound: enough to keep the controllers busy, few enough for each to be
// served long before it would give up.
const mostStarting = 128

// linePause is when a job in the line looks again, should nobody tell it.
const linePause = 5 * time.Second

// starting are the jobs whose objects the controllers work at, and the line of
// those that wait for their turn. The Keeper's mutex guards it; the zero value is
// ready.
type starting struct {
	busy   map[int64]bool
	line   []int64
	inLine map[int64]bool
}

// full tells whether the job has to wait for its turn.
func (s *starting) full(id int64) bool { return len(s.busy) >= mostStarting && !s.busy[id] }

// enter puts the job in line.
func (s *starting) enter(id int64) {
	if s.inLine[id] {
		return
	}
	if s.inLine == nil {
		s.inLine = map[int64]bool{}
	}
	s.inLine[id] = true
	s.line = append(s.line, id)
}

// begin notes that the job's objects are made.
func (s *starting) begin(id int64) {
	if s.busy == nil {
		s.busy = map[int64]bool{}
	}
	s.busy[id] = true
}

// end notes that the controllers are done with the job, and returns those whose
// turn it is now.
func (s *starting) end(id int64) (next []int64) {
	if !s.busy[id] {
		return nil
	}
	delete(s.busy, id)
	n := min(len(s.line), mostStarting-len(s.busy))
	next = s.line[:max(0, n)]
	s.line = s.line[len(next):]
	for _, id := range next {
		delete(s.inLine, id)
	}
	return next
}

// queueStart has the job wait for its turn.
func (k *Keeper) queueStart(b *v1alpha1.BatchJob) {
	k.remember(b, func(m *Memory) { m.InLine = true })
	k.mu.Lock()
	k.starting.enter(b.Spec.JobID)
	full := k.starting.full(b.Spec.JobID)
	k.mu.Unlock()
	if !full { // since it was looked at
		k.queue.Add(b.Spec.JobID)
	}
}

// started has those in line go on when the controllers are done with b: it is
// placed no more, or has all of its pods bound.
func (k *Keeper) started(b *v1alpha1.BatchJob) {
	k.mu.Lock()
	next := k.starting.end(b.Spec.JobID)
	k.mu.Unlock()
	for _, id := range next {
		k.queue.Add(id)
	}
}

// allBound tells whether each node of the job's attempt has its pod.
func (f *Facts) allBound() bool {
	bound := 0
	for _, p := range f.current() {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	return bound >= len(f.Job.Status.Allocation.Nodes)
}

// began is from when on the job's agents are waited for: not before its objects
// were made.
func (f *Facts) began() time.Time {
	at := f.Job.Status.StartTime.Time
	if f.Memory.CreatedAt.After(at) {
		return f.Memory.CreatedAt
	}
	return at
}
