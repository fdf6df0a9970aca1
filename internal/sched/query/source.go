package query

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// UsageSource returns what finished runs of each association and QOS have used since an
// instant (zero: ever), in TRES-seconds by name, decayed with the half-life (0: not at
// all). The usage of each run is multiplied by the factor of its QOS. noDecay reports
// whether the usage of a QOS never decays. Safe for concurrent use.
type UsageSource func(
	now time.Time, halfLife time.Duration, since time.Time,
	factor func(qos string) float64, noDecay func(qos string) bool,
) snapshot.Usage

// Source assembles the input of snapshots from the stores of a cluster. Safe for
// concurrent use.
type Source struct {
	// Usage returns the usage of finished runs; if it is nil, only running jobs
	// count for fair share. Set it before use.
	Usage UsageSource
	// RefusingNodes returns snapshot.Input's RefusingNodes; if it is nil, there are
	// none. Set it before use.
	RefusingNodes func(now time.Time) map[string]time.Time
	// Avoided returns snapshot.Input's Avoided; nil: there are none. Set it before use.
	Avoided func(now time.Time) map[int64]snapshot.Avoided
	// Unprepared returns snapshot.Input's Unprepared; nil: there are none. Set it before use.
	Unprepared func(now time.Time) map[string]int

	cluster *control.Cluster
	now     func() time.Time

	mu      sync.Mutex // held while Usage is called
	usage   snapshot.Usage
	usageAt time.Time
}

// Input returns the input of a snapshot of the cluster at the instant, including what
// this process has written or assumed.
func (s *Source) Input(now time.Time) snapshot.Input {
	c := s.cluster
	in := snapshot.Input{
		Now:          now,
		Nodes:        c.Nodes.List(),
		Pods:         c.Pods.List(),
		Jobs:         c.Jobs.List(),
		Partitions:   c.Partitions.List(),
		Reservations: c.Reservations.List(),
		NodePools:    c.NodePools.List(),
		Parameters:   c.Parameters(),
		Policy: snapshot.Policy{
			Accounts: c.Accounts.List(), Users: c.Users.List(), QOS: c.QOS.List(), Usage: s.readUsage(now),
		},
	}
	if s.RefusingNodes != nil {
		in.RefusingNodes = s.RefusingNodes(now)
	}
	if s.Avoided != nil {
		in.Avoided = s.Avoided(now)
	}
	if s.Unprepared != nil {
		in.Unprepared = s.Unprepared(now)
	}
	return in
}

// maxUsageAge is how long the usage is cached, unless PriorityCalcPeriod is shorter.
const maxUsageAge = 10 * time.Second

// readUsage returns the usage of finished runs. Reading it is expensive, so it is
// cached for a while.
func (s *Source) readUsage(now time.Time) snapshot.Usage {
	if s.Usage == nil {
		return snapshot.Usage{}
	}
	params := s.cluster.Parameters().Priority
	maxAge, halfLife := maxUsageAge, time.Duration(priority.DefaultHalfLife)*time.Second
	if c := params.PriorityCalcPeriod; c != nil {
		maxAge = min(maxAge, time.Duration(*c)*time.Second)
	}
	if h := params.PriorityDecayHalfLife; h != nil {
		halfLife = time.Duration(*h) * time.Second
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usageAt.IsZero() || now.Sub(s.usageAt) >= maxAge {
		qos, since := s.cluster.QOS.List(), usageReset(now, params.PriorityUsageResetPeriod)
		s.usage = s.Usage(now, halfLife, since, snapshot.UsageFactor(qos), snapshot.NoDecay(qos))
		s.usageAt = now
	}
	return s.usage
}

// qosUsage returns what jobs of each QOS have used, running ones included, in
// billing-seconds.
func (s *Source) qosUsage(v *snapshot.Snapshot) map[string]float64 {
	out := v.RunningQOSUsage(s.cluster.QOS.List())
	for name, tres := range s.readUsage(s.now()).QOS {
		out[name] += tres["billing"]
	}
	return out
}

// usageReset returns when the usage was last reset (slurm.conf(5),
// PriorityUsageResetPeriod); zero: never.
func usageReset(now time.Time, period string) time.Time {
	y, m, d := now.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	switch period {
	case "DAILY":
		return day
	case "WEEKLY":
		return day.AddDate(0, 0, -int(day.Weekday()))
	case "MONTHLY":
		return day.AddDate(0, 0, 1-d)
	case "QUARTERLY":
		return time.Date(y, m-(m-1)%3, 1, 0, 0, 0, 0, now.Location())
	case "YEARLY":
		return time.Date(y, 1, 1, 0, 0, 0, 0, now.Location())
	}
	return time.Time{}
}
