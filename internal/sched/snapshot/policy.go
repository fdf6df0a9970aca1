package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// Policy is what decides between jobs beside the nodes. The objects are only
// read.
type Policy struct {
	Accounts []*v1alpha1.Account
	Users    []*v1alpha1.User
	QOS      []*v1alpha1.QOS
	// Used is what finished runs have used.
	Used Used
}

// Used is what finished runs of each association and in each QOS have used,
// decayed, in TRES-seconds by name.
type Used struct {
	Associations map[status.AssociationKey]map[string]float64
	QOS          map[string]map[string]float64
}

// policy is a Policy at work in a View.
type policy struct {
	factors *priority.Multifactor
	limits  *limits.Checker
	minutes map[status.AssociationKey]map[string]float64 // used, by TRES
	byQOS   map[string]map[string]float64
}

// addPolicy makes priorities and limits from what runs and what was used. The
// view has its nodes, partitions and running jobs.
func (v *View) addPolicy(in *Input) {
	parts := Partitions(in.Partitions)
	cpus, tres := 0, map[string]float64{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		cpus += n.CPUs
		tres["mem"] += float64(n.Memory)
		for _, g := range n.GRES {
			tres["gres/"+g.Name] += float64(g.Count)
		}
	}
	tres["cpu"], tres["node"], tres["billing"] = float64(cpus), float64(len(v.Nodes)), float64(cpus)
	v.qos = make(map[string]*v1alpha1.QOS, len(in.Policy.QOS))
	for _, q := range in.Policy.QOS {
		v.qos[q.Name] = q
	}
	usage, minutes, byQOS, running := v.usage(in)
	v.policy.minutes, v.policy.byQOS = minutes, byQOS
	v.policy.factors = priority.New(priority.Input{
		Now: v.Now, Parameters: in.Parameters.Priority, Accounts: in.Policy.Accounts, Users: in.Policy.Users, QOS: in.Policy.QOS,
		Partitions: parts, Usage: usage, Nodes: len(v.Nodes), CPUs: cpus, TRES: tres,
	})
	v.policy.limits = limits.New(&limits.Input{
		Accounts: in.Policy.Accounts, Users: in.Policy.Users, QOS: in.Policy.QOS, Partitions: parts, Running: running, Minutes: minutes, MinutesOfQOS: byQOS,
		Enforce: in.Parameters.AccountingStorageEnforce,
	})
}

// UsageFactor tells how often a run in a QOS counts for what its association has
// used (sacctmgr(1), UsageFactor): once where the QOS does not say.
func UsageFactor(list []*v1alpha1.QOS) func(qos string) float64 {
	factors := map[string]float64{}
	for _, q := range list {
		if f, err := strconv.ParseFloat(q.Spec.UsageFactor, 64); err == nil && f >= 0 {
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

// NoDecay tells of which QOS what was used never fades (sacctmgr(1), NoDecay).
func NoDecay(list []*v1alpha1.QOS) func(qos string) bool {
	kept := map[string]bool{}
	for _, q := range list {
		kept[q.Name] = limits.Flagged(q, "NoDecay")
	}
	return func(qos string) bool { return kept[qos] }
}

// usage adds what running jobs have used to what finished ones have.
func (v *View) usage(in *Input) (billing map[status.AssociationKey]float64, minutes map[status.AssociationKey]map[string]float64, byQOS map[string]map[string]float64, running []limits.Use) {
	billing, minutes, byQOS = map[status.AssociationKey]float64{}, map[status.AssociationKey]map[string]float64{}, map[string]map[string]float64{}
	within := func(qos, name string, seconds float64) {
		if byQOS[qos] == nil {
			byQOS[qos] = map[string]float64{}
		}
		byQOS[qos][name] += seconds / 60
	}
	spend := func(k status.AssociationKey, name string, seconds float64) {
		if name == "billing" {
			billing[k] += seconds
		}
		if minutes[k] == nil {
			minutes[k] = map[string]float64{}
		}
		minutes[k][name] += seconds / 60
	}
	for k, tres := range in.Policy.Used.Associations {
		for name, n := range tres {
			spend(k, name, n)
		}
	}
	for qos, tres := range in.Policy.Used.QOS {
		for name, n := range tres {
			within(qos, name, n)
		}
	}
	factor := UsageFactor(in.Policy.QOS)
	for i := range v.Running {
		b := v.jobs[v.Running[i].ID]
		u := v.held(b)
		running = append(running, u)
		if b.Status.StartTime == nil {
			continue
		}
		ran := max(0, float64(v.Now-b.Status.StartTime.Unix()-b.Status.Suspended)) * factor(u.QOS)
		k := status.AssociationKey{Account: u.Account, User: u.User}
		for name, n := range map[string]int64{"billing": u.Billing, "cpu": u.CPUs, "mem": u.Memory, "node": u.Nodes, limits.WallMinutes: 1} {
			spend(k, name, ran*float64(n))
			within(u.QOS, name, ran*float64(n))
		}
		for name, n := range u.GRES {
			spend(k, "gres/"+name, ran*float64(n))
			within(u.QOS, "gres/"+name, ran*float64(n))
		}
	}
	return billing, minutes, byQOS, running
}

// Wall is how many minutes the jobs of each association ran, decayed, and those
// of each QOS.
func (v *View) Wall() (associations map[status.AssociationKey]float64, qos map[string]float64) {
	associations, qos = map[status.AssociationKey]float64{}, map[string]float64{}
	for k, used := range v.policy.minutes {
		associations[k] = used[limits.WallMinutes]
	}
	for name, used := range v.policy.byQOS {
		qos[name] = used[limits.WallMinutes]
	}
	return associations, qos
}

// QOSUsage is what the running jobs of each QOS have used so far, billing times
// seconds, by the QOS' factor.
func (v *View) QOSUsage(list []*v1alpha1.QOS) map[string]float64 {
	out, factor := map[string]float64{}, UsageFactor(list)
	for i := range v.Running {
		b := v.jobs[v.Running[i].ID]
		if b.Status.StartTime == nil {
			continue
		}
		u := v.held(b)
		out[u.QOS] += max(0, float64(v.Now-b.Status.StartTime.Unix()-b.Status.Suspended)) * factor(u.QOS) * float64(u.Billing)
	}
	return out
}

// held is what a job holds, as limits count it.
func (v *View) held(b *v1alpha1.BatchJob) limits.Use {
	u := limits.Use{Account: b.Spec.Job.Account, User: b.Spec.User, QOS: b.Spec.Job.QOS, Partition: b.Status.Partition,
		Nodes: int64(len(b.Status.Allocation.Nodes)), Licenses: licenseCounts(b.Spec.Job.Licenses)}
	for i := range b.Status.Allocation.Nodes {
		a := &b.Status.Allocation.Nodes[i]
		u.CPUs += int64(a.CPUs)
		u.Memory += a.Memory
		for _, g := range a.GRES {
			u.GRES = count(u.GRES, g.Name, g.Type, g.Count)
		}
	}
	if end, ok := b.Status.LimitEnds(); ok {
		u.Minutes = max(0, (end.Unix()-v.Now+59)/60)
	}
	v.bill(&u)
	return u
}

// bill sets what the use is billed in its partition.
func (v *View) bill(u *limits.Use) {
	var b limits.Billing
	if p := v.partition(u.Partition); p != nil {
		b = p.billing
	}
	u.Billing, u.Billed = b.Of(u.CPUs, u.Memory, u.Nodes, u.GRES, u.Licenses), true
}

// billWith lets the plan count what the job is billed, where a limit is about
// that. least is what it wants at least.
func (v *View) billWith(out *backfill.Job, least *limits.Use) {
	if !slices.ContainsFunc(out.Limits, func(l int) bool { return v.policy.limits.Limits[l].Quantity == backfill.QuantityBilling }) {
		return
	}
	partition, licences, atLeast := least.Partition, least.Licenses, least.Billing
	out.Bill = func(nodes []backfill.Assignment) int64 {
		if nodes == nil {
			return atLeast
		}
		u := limits.Use{Partition: partition, Nodes: int64(len(nodes)), Licenses: licences}
		for i := range nodes {
			u.CPUs += int64(nodes[i].CPUCount)
			u.Memory += nodes[i].Memory
			for _, g := range nodes[i].GRES {
				u.GRES = count(u.GRES, g.Name, g.Type, g.Count)
			}
		}
		v.bill(&u)
		return u.Billing
	}
}

func count(to map[string]int64, name, kind string, n int64) map[string]int64 {
	if to == nil {
		to = map[string]int64{}
	}
	to[name] += n
	if kind != "" {
		to[name+":"+kind] += n
	}
	return to
}

func licenseCounts(list []job.License) map[string]int64 {
	if len(list) == 0 {
		return nil
	}
	out := map[string]int64{}
	for _, l := range list {
		out[l.Name] += int64(l.Count)
	}
	return out
}

// judge gives a pending job its priority and its limits. w has its partition
// and its time limit, out what it wants of nodes.
func (v *View) judge(out *backfill.Job, b *v1alpha1.BatchJob, w *Wanted) {
	j := &b.Spec.Job
	u := v.wants(out, b, w)
	if out.Blocked == "" {
		out.Blocked, out.Limits = v.policy.limits.Pending(&u)
		if out.Blocked == "" && v.belowThreshold(&u) {
			out.Blocked = "QOSUsageThreshold"
		}
		out.NoReserve = limits.Flagged(v.qos[u.QOS], "NoReserve")
		v.billWith(out, &u)
	}
	if j.Hold == "" && j.Priority == nil {
		w.Priority = v.policy.factors.Of(b.Spec.JobID, v.priorityJob(b, &u, out.Blocked))
	}
}

// belowThreshold tells whether the association's fair share is less than what
// the job's QOS wants of it (sacctmgr(1), EnforceUsageThreshold).
func (v *View) belowThreshold(u *limits.Use) bool {
	q := v.qos[u.QOS]
	if !limits.Flagged(q, "EnforceUsageThreshold") {
		return false
	}
	least, err := strconv.ParseFloat(q.Spec.UsageThres, 64)
	return err == nil && v.policy.factors.Factor(status.AssociationKey{Account: u.Account, User: u.User}) < least
}

// wants is the least that a pending job wants, as limits count it.
func (v *View) wants(out *backfill.Job, b *v1alpha1.BatchJob, w *Wanted) limits.Use {
	nodes := int64(max(1, out.MinNodes))
	tasks := int64(out.Tasks)
	if tasks == 0 {
		tasks = nodes * int64(max(1, out.TasksPerNode))
	}
	u := limits.Use{Account: b.Spec.Job.Account, User: b.Spec.User, QOS: b.Spec.Job.QOS, Partition: w.Partition,
		Nodes: nodes, CPUs: max(tasks*int64(max(1, out.CPUsPerTask)), nodes*int64(max(1, out.MinCPUs))), Licenses: licenseCounts(b.Spec.Job.Licenses)}
	if out.Overcommit {
		u.CPUs = nodes * int64(max(1, out.CPUsPerTask))
	}
	u.Memory = out.MemPerNode*nodes + out.MemPerCPU*u.CPUs
	for _, g := range out.GRES {
		u.GRES = count(u.GRES, g.Name, g.Type, g.Count*nodes)
	}
	for _, g := range out.GRESPerTask {
		u.GRES = count(u.GRES, g.Name, g.Type, g.Count*tasks)
	}
	if w.TimeLimit > 0 {
		u.Minutes = int64(w.TimeLimit)
	}
	v.bill(&u)
	return u
}

func (v *View) priorityJob(b *v1alpha1.BatchJob, u *limits.Use, blocked string) *priority.Job {
	p := &priority.Job{Account: u.Account, User: u.User, QOS: u.QOS, Partition: u.Partition, Nice: b.Spec.Job.Nice, Site: b.Spec.Job.SiteFactor,
		Nodes: int32(u.Nodes), CPUs: int32(u.CPUs), Limit: int32(u.Minutes), Since: v.eligibleSince(b, blocked)}
	if !v.policy.factors.CountsTRES() {
		return p
	}
	p.TRES = map[string]float64{"cpu": float64(u.CPUs), "mem": float64(u.Memory), "node": float64(u.Nodes), "billing": float64(u.Billing)}
	for name, n := range u.GRES {
		p.TRES["gres/"+name] = float64(n)
	}
	return p
}

// eligibleSince is when the job's age began: submitted, its begin time past and
// what it waited for over. 0: it is not eligible yet.
func (v *View) eligibleSince(b *v1alpha1.BatchJob, blocked string) int64 {
	since := int64(0)
	if b.Spec.SubmitTime != nil {
		since = b.Spec.SubmitTime.Unix()
	}
	if slices.ContainsFunc(v.params.PriorityFlags, func(f string) bool { return strings.EqualFold(f, "ACCRUE_ALWAYS") }) {
		return since
	}
	if strings.HasPrefix(blocked, "Dependency") {
		return 0
	}
	since = max(since, earliest(b))
	for i := range b.Spec.Job.Dependencies.Items {
		if other := v.jobs[b.Spec.Job.Dependencies.Items[i].JobID]; other != nil && other.Status.EndTime != nil {
			since = max(since, other.Status.EndTime.Unix())
		}
	}
	return since
}

// Factors tells how priorities come about; Limits that of the view's pending
// jobs.
func (v *View) Factors() *priority.Multifactor { return v.policy.factors }

// Explain gives the terms of a pending job's priority; ok is false for a job
// that does not wait, or is held.
func (v *View) Explain(id int64) (p priority.Job, ok bool) {
	b := v.jobs[id]
	w, known := v.wanted[id]
	if b == nil || !known || b.Spec.Job.Hold != "" {
		return priority.Job{}, false
	}
	part := v.partition(w.Partition)
	if part == nil {
		return priority.Job{}, false
	}
	out := backfill.Job{}
	v.fill(&out, &b.Spec.Job, part)
	u := v.wants(&out, b, &w)
	return *v.priorityJob(b, &u, v.blocked(b, part)), true
}
