package backfill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// machine drives a Scheduler with random events and checks what it does.
type machine struct {
	q       *Scheduler
	s       *Snapshot
	now     int64
	next    int64
	jobs    map[int64]*Job
	ends    map[int64]int64 // running: when they really end
	running map[int64]Decision
	told    map[int64]int64 // first promise
}

func newMachine(t *rapid.T) *machine {
	s := drawSnapshot(t)
	s.Pending = nil
	m := &machine{s: s, jobs: map[int64]*Job{}, ends: map[int64]int64{}, running: map[int64]Decision{}, told: map[int64]int64{}}
	m.q = NewScheduler(s)
	m.q.foldAt = rapid.SampledFrom([]int{2, 128}).Draw(t, "fold")
	return m
}

func (m *machine) arrive(t *rapid.T) {
	m.next++
	j := drawJob(t, m.next, len(m.s.Nodes))
	j.Priority, j.Begin = 0, 0
	m.jobs[j.ID] = &j
	m.q.Submit(&j)
}

func (m *machine) plan(t *rapid.T) {
	for _, d := range m.q.Plan() {
		j := m.jobs[d.ID]
		checkGang(t, m.s, *j, d)
		m.running[d.ID] = d
		m.ends[d.ID] = m.now + rapid.Int64Range(1, j.Duration).Draw(t, "runs")
	}
	m.check(t)
}

// check fails on over-commitment and broken promises.
func (m *machine) check(t *rapid.T) {
	s := *m.s
	s.Running = nil
	for id, d := range m.running {
		r := Running{ID: id, Exclusive: m.jobs[id].Exclusive}
		for _, a := range d.Nodes {
			r.Allocation = append(r.Allocation, NodeAllocation{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
		}
		s.Running = append(s.Running, r)
	}
	checkHeld(t, &s)
	for _, w := range m.q.queue {
		m.q.e.pass++ // forget what was refused
		if m.q.e.fitsNow(w.shape, w.job, w.job.Duration) != nil && !w.held && w.told.Nodes == nil {
			t.Fatalf("at %d: job %d could start and does not", m.now, w.job.ID)
		}
	}
	if m.s.Policy.Reservations > 0 {
		return
	}
	for id := range m.jobs {
		d, waits := m.q.Told(id)
		if r, runs := m.running[id]; runs {
			d = r
		} else if !waits || d.Nodes == nil {
			continue
		}
		if first, ok := m.told[id]; ok && d.Start > first {
			t.Fatalf("at %d: job %d was promised %d and now gets %d", m.now, id, first, d.Start)
		} else if !ok {
			m.told[id] = d.Start
		}
	}
}

// instants at which something ends or is planned to start.
func (m *machine) step(t *rapid.T) {
	next := m.now + rapid.Int64Range(1, 20).Draw(t, "pass")
	for _, end := range m.ends {
		next = min(next, end)
	}
	for id := range m.jobs {
		if d, ok := m.q.Told(id); ok && d.Start > m.now {
			next = min(next, d.Start)
		}
	}
	m.now = next
	var over []int64
	for id, end := range m.ends {
		if end <= next {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	for _, id := range over {
		m.q.End(id)
		delete(m.ends, id)
		delete(m.running, id)
		delete(m.jobs, id)
	}
	m.q.Advance(next)
}

func (m *machine) cancel(t *rapid.T) {
	var waits []int64
	for id := range m.jobs {
		if _, ok := m.q.Told(id); ok {
			waits = append(waits, id)
		}
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		id := rapid.SampledFrom(waits).Draw(t, "cancelled")
		m.q.End(id)
		delete(m.jobs, id)
	}
}

// Event by event nothing is over-committed, no gang is split, and with a
// reservation for every job none starts later than it was first told, whoever
// comes behind it, ends early or is cancelled.
func TestSchedulerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0, 1, 2:
				m.arrive(t)
			case 3:
				m.cancel(t)
			default:
				m.step(t)
			}
			m.plan(t)
		}
	})
}
