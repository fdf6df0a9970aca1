package planner

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/status"
)

// stats are the statistics of the planning cycles. Safe for concurrent use.
type stats struct {
	mu sync.Mutex
	n  status.PlanStats
}

// addCycle adds a plan of all jobs that began at now. Its decisions are ordered by
// priority; starts reports whether the starts among them are carried out.
func (s *stats) addCycle(now time.Time, took time.Duration, decisions []backfill.Decision, starts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, micros, depth := &s.n, max(1, took.Microseconds()), int64(len(decisions))
	n.Cycles++
	n.Last, n.LastAt, n.Max, n.Total = micros, now.Unix(), max(n.Max, micros), n.Total+micros
	n.Depth, n.LastDepth = n.Depth+depth, depth
	n.Queue, n.Table = 0, 0
	for i := range decisions {
		switch {
		case !decisions[i].StartNow:
			n.Queue++
			if decisions[i].Start > 0 {
				n.Table++
			}
		case starts:
			n.Starts++
			if n.Queue > 0 { // it starts before a job of higher priority
				n.Backfilled++
				n.BackfilledEver++
			}
		}
	}
	n.QueueTotal += n.Queue
	n.TableTotal += n.Table
}

// addStarts adds an incremental cycle that starts that number of jobs, backfilled of them
// before jobs of higher priority.
func (s *stats) addStarts(jobs, backfilled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.Starts += int64(jobs)
	s.n.Backfilled += int64(backfilled)
	s.n.BackfilledEver += int64(backfilled)
}

// Stats returns the statistics of the cycles since the last ResetStats.
func (p *Planner) Stats() status.PlanStats {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	return p.stats.n
}

// ResetStats resets the statistics, except the number of backfilled jobs since the
// process started.
func (p *Planner) ResetStats() {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	p.stats.n = status.PlanStats{BackfilledEver: p.stats.n.BackfilledEver}
}
