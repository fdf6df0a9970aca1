// Package statistics counts what sdiag shows: jobs by what became of them, and
// requests by type and user.
package statistics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// maxNamed bounds the users and the request types that are counted separately.
const maxNamed = 10000

// Counters counts since the last reset, or since midnight UTC, as slurmctld does.
// Safe for concurrent use.
type Counters struct {
	now func() time.Time

	mu      sync.Mutex
	since   time.Time
	reset   bool        // midnight has passed since the last Snapshot
	started bool        // the stores are filled, so changes of jobs are counted
	serving int         // requests that are being served
	jobs    status.Diag // the counters of jobs alone
	types   map[string]*status.RequestStats
	users   map[string]*status.RequestStats
}

// New returns counters at zero, which count requests at once and jobs from
// StartJobs on.
func New(now func() time.Time) *Counters {
	c := &Counters{now: now}
	c.Reset()
	return c
}

// StartJobs starts the counting of jobs. Call it when the stores are filled: the jobs
// that fill them are not new.
func (c *Counters) StartJobs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
}

// Reset sets all counters to zero.
func (c *Counters) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetAt(c.now())
}

// resetAt sets all counters to zero. The caller holds mu.
func (c *Counters) resetAt(at time.Time) {
	c.since, c.jobs = at, status.Diag{}
	c.types, c.users = map[string]*status.RequestStats{}, map[string]*status.RequestStats{}
}

// resetAtMidnight resets the counters if midnight has passed since the last reset. The
// caller holds mu.
func (c *Counters) resetAtMidnight() {
	if midnight := c.now().UTC().Truncate(24 * time.Hour); c.since.Before(midnight) {
		c.resetAt(midnight)
		c.reset = true
	}
}

// JobChanged counts a change of a job in the store.
func (c *Counters) JobChanged(old, now *v1alpha1.BatchJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started || now == nil || now.Spec.JobID == 0 {
		return
	}
	c.resetAtMidnight()
	if (old == nil || old.Spec.JobID == 0) && now.Spec.Origin == nil {
		c.jobs.Submitted++
	}
	before := ""
	if old != nil {
		before = old.Status.State
	}
	if after := now.Status.State; after != before {
		c.countState(before, after)
	}
}

// countState counts a job that went from one state to another. The caller holds mu.
func (c *Counters) countState(before, after string) {
	switch after {
	case v1alpha1.StateRunning:
		if before != v1alpha1.StateSuspended {
			c.jobs.Started++
		}
	case v1alpha1.StateCompleted:
		c.jobs.Completed++
	case v1alpha1.StateCancelled:
		c.jobs.Cancelled++
	case v1alpha1.StateFailed, v1alpha1.StateTimeout, v1alpha1.StateNodeFail, v1alpha1.StateOutOfMemory,
		v1alpha1.StateDeadline, v1alpha1.StateBootFail:
		c.jobs.Failed++
	}
}

// StartRequest counts a request of the named type; done ends its measurement.
func (c *Counters) StartRequest(name string, caller *directory.Caller) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving++
	start := c.now()
	return func() { c.endRequest(name, caller, c.now().Sub(start)) }
}

func (c *Counters) endRequest(name string, caller *directory.Caller, lasted time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving--
	c.resetAtMidnight()
	uid := int64(0)
	if caller.User != nil {
		uid = caller.User.Spec.UID
	}
	add(c.types, name, 0, lasted)
	add(c.users, caller.Name, uid, lasted)
}

func add(to map[string]*status.RequestStats, name string, id int64, lasted time.Duration) {
	s := to[name]
	if s == nil {
		if len(to) >= maxNamed {
			return
		}
		s = &status.RequestStats{Name: name, ID: id}
		to[name] = s
	}
	s.Count++
	s.Total += lasted.Microseconds()
}

// Snapshot returns the counters, and whether midnight has passed since the last Snapshot,
// so that other statistics are due for a reset as well.
func (c *Counters) Snapshot() (d status.Diag, reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetAtMidnight()
	reset, c.reset = c.reset, false
	d = c.jobs
	d.Since, d.Answering = c.since.Unix(), c.serving
	d.Types, d.Users = sorted(c.types), sorted(c.users)
	return d, reset
}

// Requests returns the counters of requests by type.
func (c *Counters) Requests() []status.RequestStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetAtMidnight()
	return sorted(c.types)
}

// sorted returns the values of m in the order of their names.
func sorted(m map[string]*status.RequestStats) []status.RequestStats {
	out := make([]status.RequestStats, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[name])
	}
	return out
}
