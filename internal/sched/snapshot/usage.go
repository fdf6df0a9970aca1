package snapshot

import (
	"math"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/status"
)

// Usage is what finished runs of each association and in each QOS have used,
// decayed, in TRES-seconds by name.
type Usage struct {
	Associations map[status.AssociationKey]map[string]float64
	QOS          map[string]map[string]float64
}

// usedMinutes is what finished and running jobs have used, in TRES-minutes by name.
type usedMinutes struct {
	associations map[status.AssociationKey]map[string]float64
	qos          map[string]map[string]float64
	billing      map[status.AssociationKey]float64 // in billing-seconds
}

func (m *usedMinutes) addAssociation(k status.AssociationKey, name string, seconds float64) {
	if name == "billing" {
		m.billing[k] += seconds
	}
	if m.associations[k] == nil {
		m.associations[k] = map[string]float64{}
	}
	m.associations[k][name] += seconds / 60
}

func (m *usedMinutes) addQOS(qos, name string, seconds float64) {
	if m.qos[qos] == nil {
		m.qos[qos] = map[string]float64{}
	}
	m.qos[qos][name] += seconds / 60
}

// collectUsage adds what running jobs have used so far to the usage of finished
// ones, and returns what the running jobs hold as well.
func (s *Snapshot) collectUsage(p *Policy) (used usedMinutes, running []limits.Usage) {
	used = usedMinutes{
		associations: map[status.AssociationKey]map[string]float64{},
		qos:          map[string]map[string]float64{},
		billing:      map[status.AssociationKey]float64{},
	}
	for k, tres := range p.Usage.Associations {
		for name, n := range tres {
			used.addAssociation(k, name, n)
		}
	}
	for qos, tres := range p.Usage.QOS {
		for name, n := range tres {
			used.addQOS(qos, name, n)
		}
	}
	factor := UsageFactor(p.QOS)
	for i := range s.Running {
		b := s.jobs[s.Running[i].ID]
		u := s.heldUsage(b)
		running = append(running, u)
		if b.Status.StartTime == nil {
			continue
		}
		seconds := s.weightedSeconds(b, factor)
		add := func(name string, n int64) {
			used.addAssociation(u.Association(), name, seconds*float64(n))
			used.addQOS(u.QOS, name, seconds*float64(n))
		}
		add("billing", u.Billing)
		add("cpu", u.CPUs)
		add("mem", u.Memory)
		add("node", u.Nodes)
		add(limits.WallMinutes, 1)
		for name, n := range u.GRES {
			add("gres/"+name, n)
		}
	}
	return used, running
}

// weightedSeconds returns how long a job that has started ran, times the usage
// factor of its QOS.
func (s *Snapshot) weightedSeconds(b *v1alpha1.BatchJob, factor func(qos string) float64) float64 {
	ran := float64(s.Now - b.Status.StartTime.Unix() - b.Status.Suspended)
	return max(0, ran) * factor(b.Spec.Job.QOS)
}

// UsageFactor returns a function that returns the factor by which usage in a QOS is
// multiplied (sacctmgr(1), UsageFactor); 1 by default.
func UsageFactor(list []*v1alpha1.QOS) func(qos string) float64 {
	factors := map[string]float64{}
	for _, q := range list {
		if f, err := strconv.ParseFloat(q.Spec.UsageFactor, 64); err == nil && f >= 0 && !math.IsInf(f, 1) {
			factors[q.Name] = f
		}
	}
	return func(qos string) float64 {
		if f, set := factors[qos]; set {
			return f
		}
		return 1
	}
}

// NoDecay returns a function that reports whether the usage of a QOS never decays
// (sacctmgr(1), NoDecay).
func NoDecay(list []*v1alpha1.QOS) func(qos string) bool {
	noDecay := map[string]bool{}
	for _, q := range list {
		noDecay[q.Name] = limits.HasFlag(q, "NoDecay")
	}
	return func(qos string) bool { return noDecay[qos] }
}

// WallMinutes returns how many minutes the jobs of each association and of each QOS
// ran, decayed.
func (s *Snapshot) WallMinutes() (associations map[status.AssociationKey]float64, qos map[string]float64) {
	associations, qos = map[status.AssociationKey]float64{}, map[string]float64{}
	for k, used := range s.policy.usage.associations {
		associations[k] = used[limits.WallMinutes]
	}
	for name, used := range s.policy.usage.qos {
		qos[name] = used[limits.WallMinutes]
	}
	return associations, qos
}

// RunningQOSUsage returns what the running jobs of each QOS have used so far, in
// billing-seconds, weighted by the factor of the QOS in the list.
func (s *Snapshot) RunningQOSUsage(list []*v1alpha1.QOS) map[string]float64 {
	out, factor := map[string]float64{}, UsageFactor(list)
	for i := range s.Running {
		b := s.jobs[s.Running[i].ID]
		if b.Status.StartTime == nil {
			continue
		}
		u := s.heldUsage(b)
		out[u.QOS] += s.weightedSeconds(b, factor) * float64(u.Billing)
	}
	return out
}

// heldUsage returns what a job holds, as limits count it.
func (s *Snapshot) heldUsage(b *v1alpha1.BatchJob) limits.Usage {
	u := limits.Usage{
		Account: b.Spec.Job.Account, User: b.Spec.User, QOS: b.Spec.Job.QOS, Partition: b.Status.Partition,
		Nodes: int64(len(b.Status.Allocation.Nodes)), Licenses: limits.CountLicenses(b.Spec.Job.Licenses),
	}
	for i := range b.Status.Allocation.Nodes {
		a := &b.Status.Allocation.Nodes[i]
		u.CPUs += int64(a.CPUs)
		u.Memory += a.Memory
		for _, g := range a.GRES {
			u.AddGRES(g.Name, g.Type, g.Count)
		}
	}
	if end, ok := b.Status.LimitEnds(); ok {
		u.Minutes = max(0, (end.Unix()-s.Now+59)/60)
	}
	s.setBilling(&u)
	return u
}

// setBilling sets what the usage is billed in its partition.
func (s *Snapshot) setBilling(u *limits.Usage) {
	var b limits.Billing
	if p := s.Partition(u.Partition); p != nil {
		b = p.billing
	}
	u.Billing, u.Billed = b.Of(u.CPUs, u.Memory, u.Nodes, u.GRES, u.Licenses), true
}
