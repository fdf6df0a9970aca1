package query

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// Plan is a plan of the pending jobs that answers queries. It is immutable once it is
// published.
type Plan struct {
	snapshot *snapshot.Snapshot
	at       time.Time // every change until then is in the snapshot
	planned  map[int64]control.Planned
	serial   uint64

	once   sync.Once
	starts map[string]time.Time // see nodeStarts
}

// NewPlan returns a plan on the snapshot, whose input was read at that instant, for about that
// number of pending jobs. It keeps only what answers queries of the snapshot.
func NewPlan(s *snapshot.Snapshot, at time.Time, jobs int) *Plan {
	return &Plan{snapshot: s.ForQueries(), at: at, planned: make(map[int64]control.Planned, jobs)}
}

// Add adds what is planned for a pending job. Of the tasks of an array the first that
// waits counts, and the limit of tasks only if nothing else holds them back.
func (p *Plan) Add(id int64, planned control.Planned) {
	if old, known := p.planned[id]; !known || old.Reason == backfill.ReasonArrayTaskLimit {
		p.planned[id] = planned
	}
}

// nodeStarts returns the nodes on which jobs will start that wait for resources, with
// the latest such start.
func (p *Plan) nodeStarts() map[string]time.Time {
	p.once.Do(func() {
		p.starts = map[string]time.Time{}
		for _, planned := range p.planned {
			if planned.Reason != backfill.ReasonResources && planned.Reason != backfill.ReasonPriority {
				continue
			}
			for _, name := range planned.Nodes {
				if planned.Start.After(p.starts[name]) {
					p.starts[name] = planned.Start
				}
			}
		}
	})
	return p.starts
}

// EarliestStarts returns the nodes on which the newest plan starts pending jobs, with the
// earliest such start.
func (s *Service) EarliestStarts() map[string]time.Time {
	out := map[string]time.Time{}
	p := s.newest.Load()
	if p == nil {
		return out
	}
	for _, planned := range p.planned {
		if planned.Start.IsZero() {
			continue
		}
		for _, name := range planned.Nodes {
			if at, known := out[name]; !known || planned.Start.Before(at) {
				out[name] = planned.Start
			}
		}
	}
	return out
}

// Publish makes the plan the newest one. Only one goroutine may publish at a time.
func (s *Service) Publish(p *Plan) {
	p.serial = 1
	if last := s.newest.Load(); last != nil {
		p.serial = last.serial + 1
	}
	s.newest.Store(p)
}

// Planned returns what the newest plan says about a pending job; ok is false if the
// plan does not contain the job.
func (s *Service) Planned(jobID int64) (planned control.Planned, ok bool) {
	if p := s.newest.Load(); p != nil {
		planned, ok = p.planned[jobID]
	}
	return planned, ok
}

// Newest returns what the newest plan says about every pending job, and the serial
// number of that plan. The map must not be changed.
func (s *Service) Newest() (planned map[int64]control.Planned, serial uint64) {
	p := s.newest.Load()
	if p == nil {
		return nil, 0
	}
	return p.planned, p.serial
}

// HasPlan reports whether a plan has been published.
func (s *Service) HasPlan() bool { return s.newest.Load() != nil }
