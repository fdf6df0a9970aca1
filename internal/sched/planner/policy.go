package planner

import (
	"slices"
	"time"

	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// UsageSource tells what finished runs of each association and QOS have used, in
// TRES-seconds by name, decayed with the half-life (0: not at all), counting
// from since on (zero: all), each run so often as the factor of its QOS says.
// Safe for concurrent use.
type UsageSource func(now time.Time, halfLife time.Duration, since time.Time, factor func(qos string) float64, kept func(qos string) bool) snapshot.Used

// freshUsage is how long what was used is taken as it was read, unless
// PriorityCalcPeriod is shorter.
const freshUsage = 10 * time.Second

// policy is everything but nodes that a plan depends on.
func (p *Planner) policy(now time.Time) snapshot.Policy {
	return snapshot.Policy{
		Accounts: p.cluster.Accounts.List(), Users: p.cluster.Users.List(), QOS: p.cluster.QOS.List(),
		Used: p.used(now),
	}
}

// used is what associations have used; reading it costs something, so it is
// kept for a while.
func (p *Planner) used(now time.Time) snapshot.Used {
	if p.Usage == nil {
		return snapshot.Used{}
	}
	params := p.cluster.Parameters().Priority
	period, half := freshUsage, time.Duration(priority.DefaultHalfLife)*time.Second
	if c := params.PriorityCalcPeriod; c != nil {
		period = min(period, time.Duration(*c)*time.Second)
	}
	if h := params.PriorityDecayHalfLife; h != nil {
		half = time.Duration(*h) * time.Second
	}
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.usageAt.IsZero() || now.Sub(p.usageAt) >= period {
		p.usage, p.usageAt = p.Usage(now, half, reset(now, params.PriorityUsageResetPeriod), snapshot.UsageFactor(p.cluster.QOS.List()), snapshot.NoDecay(p.cluster.QOS.List())), now
	}
	return p.usage
}

// qosUsage is what jobs of each QOS have used, running ones included.
func (p *Planner) qosUsage(v *snapshot.View) map[string]float64 {
	out := v.QOSUsage(p.cluster.QOS.List())
	for name, tres := range p.used(p.now()).QOS {
		out[name] += tres["billing"]
	}
	return out
}

// reset is when usage began to count anew (PriorityUsageResetPeriod); zero:
// never.
func reset(now time.Time, period string) time.Time {
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

// PrioritiesView tells how the priority of every pending job comes about, by id.
func (p *Planner) PrioritiesView() *status.PriorityList {
	p.explaining.Lock() // a view remembers what it is asked
	defer p.explaining.Unlock()
	v := p.latest()
	list := &status.PriorityList{Items: []status.Priority{}}
	list.Weights, list.WeightTRES = v.Factors().Weights()
	seen := map[int64]bool{}
	for i := range v.Pending {
		id := v.Pending[i].ID
		if seen[id] {
			continue // further tasks of an array
		}
		seen[id] = true
		item, ok := p.explain(v, id)
		if ok {
			list.Items = append(list.Items, item)
		}
	}
	slices.SortFunc(list.Items, func(a, b status.Priority) int { return int(a.ID - b.ID) })
	return list
}

func (p *Planner) explain(v *snapshot.View, id int64) (status.Priority, bool) {
	b := v.Job(id)
	if b == nil {
		return status.Priority{}, false
	}
	if n := b.Spec.Job.Priority; n != nil && b.Spec.Job.Hold == "" {
		w := v.Wanted(id)
		return status.Priority{ID: id, User: b.Spec.User, Account: b.Spec.Job.Account, Partition: w.Partition, QOS: b.Spec.Job.QOS,
			Priority: *n, Direct: true, Nice: int64(b.Spec.Job.Nice)}, true
	}
	j, ok := v.Explain(id)
	if !ok {
		return status.Priority{}, false
	}
	return v.Factors().Explain(id, &j), true
}

// SharesView is the tree of accounts with what everybody has used.
func (p *Planner) SharesView() *status.ShareList {
	v := p.latest()
	f := v.Factors()
	wall, qosWall := v.Wall()
	return &status.ShareList{FairTree: f.FairTree(), Items: withWall(f.Shares(), wall), QOSUsage: p.qosUsage(v), QOSWallMins: qosWall}
}

// withWall adds to shares, in the order of their tree, how long the jobs of each
// ran: those of an account are the jobs of all below it.
func withWall(shares []status.Share, wall map[status.AssociationKey]float64) []status.Share {
	var above []int // places of the accounts that the next one may be below
	for i := range shares {
		s := &shares[i]
		above = append(above[:min(s.Depth, len(above))], i)
		if s.User == "" {
			continue
		}
		for _, k := range above {
			shares[k].WallMins += wall[status.AssociationKey{Account: s.Account, User: s.User}]
		}
	}
	return shares
}
