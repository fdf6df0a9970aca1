package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/translate/status"
)

// Policy is what orders and limits jobs, apart from the nodes. The objects are
// only read.
type Policy struct {
	Accounts []*v1alpha1.Account
	Users    []*v1alpha1.User
	QOS      []*v1alpha1.QOS
	// Usage is that of finished runs.
	Usage Usage
}

// backfillOrders are the values of BackfillOrder of a Cluster; the default is the queue's order.
var backfillOrders = map[string]backfill.Order{
	"shortest": backfill.ShortestFirst,
	"slowdown": backfill.BySlowdown,
}

// policy computes the priorities and limits of a Snapshot.
type policy struct {
	priorities *priority.Multifactor
	limits     *limits.Checker
	usage      usedMinutes
}

// addPolicy sets the priorities and limits. The snapshot has its nodes, partitions
// and running jobs.
func (s *Snapshot) addPolicy(in *Input) {
	partitions := EffectivePartitions(in.Partitions)
	cpus, tres := s.totalTRES()
	s.qos = make(map[string]*v1alpha1.QOS, len(in.Policy.QOS))
	for _, q := range in.Policy.QOS {
		s.qos[q.Name] = q
	}
	usage, running := s.collectUsage(&in.Policy)
	s.policy.usage = usage
	s.policy.priorities = priority.New(priority.Input{
		Now: s.Now, Parameters: in.Parameters.Priority,
		Accounts: in.Policy.Accounts, Users: in.Policy.Users, QOS: in.Policy.QOS, Partitions: partitions,
		Usage: usage.billing, Nodes: len(s.Nodes), CPUs: cpus, TRES: tres,
	})
	s.policy.limits = limits.New(&limits.Input{
		Accounts: in.Policy.Accounts, Users: in.Policy.Users, QOS: in.Policy.QOS, Partitions: partitions,
		Running: running, Minutes: usage.associations, MinutesOfQOS: usage.qos,
		Enforce: in.Parameters.AccountingStorageEnforce,
	})
}

// totalTRES returns what all nodes have together.
func (s *Snapshot) totalTRES() (cpus int, tres map[string]float64) {
	tres = map[string]float64{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		cpus += n.CPUs
		tres["mem"] += float64(n.Memory)
		for _, g := range n.GRES {
			tres["gres/"+g.Name] += float64(g.Count)
		}
	}
	tres["cpu"], tres["node"], tres["billing"] = float64(cpus), float64(len(s.Nodes)), float64(cpus)
	return cpus, tres
}

// applyPolicy sets the priority and the limits of a pending job. info has its
// partition and time limit, out what it requests of nodes.
func (s *Snapshot) applyPolicy(out *backfill.Job, b *v1alpha1.BatchJob, info *JobInfo) {
	j := &b.Spec.Job
	request := s.minimumRequest(out, b, info)
	if out.Blocked == "" {
		out.Blocked, out.Limits = s.policy.limits.Check(&request)
		if out.Blocked == "" && s.isBelowUsageThreshold(&request) {
			out.Blocked = "QOSUsageThreshold"
		}
		out.NoReserve = limits.HasFlag(s.qos[request.QOS], "NoReserve")
		s.setBill(out, &request)
	}
	out.Since = s.eligibleSince(b, out.Blocked)
	if j.Hold == "" && j.Priority == nil {
		info.Priority = s.policy.priorities.Of(b.Spec.JobID, s.priorityJob(b, &request, out.Blocked))
	}
}

// setBill sets how the planner computes what the job is billed, if one of its
// limits counts that. request is the least that the job requests.
func (s *Snapshot) setBill(out *backfill.Job, request *limits.Usage) {
	countsBilling := func(i int) bool { return s.policy.limits.Limits[i].Quantity == backfill.QuantityBilling }
	if !slices.ContainsFunc(out.Limits, countsBilling) {
		return
	}
	partition, licenses, minimum := request.Partition, request.Licenses, request.Billing
	out.Bill = func(nodes []backfill.Assignment) int64 {
		if nodes == nil {
			return minimum
		}
		u := limits.Usage{Partition: partition, Nodes: int64(len(nodes)), Licenses: licenses}
		for i := range nodes {
			u.CPUs += int64(nodes[i].CPUCount)
			u.Memory += nodes[i].Memory
			for _, g := range nodes[i].GRES {
				u.AddGRES(g.Name, g.Type, g.Count)
			}
		}
		s.setBilling(&u)
		return u.Billing
	}
}

// isBelowUsageThreshold reports whether the fair-share factor of the association
// is less than the QOS of the job requires (sacctmgr(1), EnforceUsageThreshold).
func (s *Snapshot) isBelowUsageThreshold(request *limits.Usage) bool {
	q := s.qos[request.QOS]
	if !limits.HasFlag(q, "EnforceUsageThreshold") {
		return false
	}
	threshold, err := strconv.ParseFloat(q.Spec.UsageThres, 64)
	return err == nil && s.policy.priorities.Factor(request.Association()) < threshold
}

// minimumRequest returns the least that a pending job requests, as limits count it.
func (s *Snapshot) minimumRequest(out *backfill.Job, b *v1alpha1.BatchJob, info *JobInfo) limits.Usage {
	nodes := int64(max(1, out.MinNodes))
	tasks := int64(out.Tasks)
	if tasks == 0 {
		tasks = nodes * int64(max(1, out.TasksPerNode))
	}
	u := limits.Usage{
		Account: b.Spec.Job.Account, User: b.Spec.User, QOS: b.Spec.Job.QOS, Partition: info.Partition,
		Nodes: nodes, CPUs: max(tasks*int64(max(1, out.CPUsPerTask)), nodes*int64(max(1, out.MinCPUs))),
		Licenses: limits.CountLicenses(b.Spec.Job.Licenses),
	}
	if out.Overcommit {
		u.CPUs = nodes * int64(max(1, out.CPUsPerTask))
	}
	u.Memory = out.MemPerNode*nodes + out.MemPerCPU*u.CPUs
	for _, g := range out.GRES {
		u.AddGRES(g.Name, g.Type, g.Count*nodes)
	}
	for _, g := range out.GRESPerTask {
		u.AddGRES(g.Name, g.Type, g.Count*tasks)
	}
	if info.TimeLimit > 0 {
		u.Minutes = int64(info.TimeLimit)
	}
	s.setBilling(&u)
	return u
}

// priorityJob returns what the job's priority depends on. blocked is why it cannot
// be considered.
func (s *Snapshot) priorityJob(b *v1alpha1.BatchJob, request *limits.Usage, blocked string) *priority.Job {
	p := &priority.Job{
		Account: request.Account, User: request.User, QOS: request.QOS, Partition: request.Partition,
		Nice: b.Spec.Job.Nice, Site: b.Spec.Job.SiteFactor,
		Nodes: int32(request.Nodes), CPUs: int32(request.CPUs), Limit: int32(request.Minutes),
		Since: s.eligibleSince(b, blocked),
	}
	if !s.policy.priorities.CountsTRES() {
		return p
	}
	p.TRES = map[string]float64{
		"cpu": float64(request.CPUs), "mem": float64(request.Memory),
		"node": float64(request.Nodes), "billing": float64(request.Billing),
	}
	for name, n := range request.GRES {
		p.TRES["gres/"+name] = float64(n)
	}
	return p
}

// eligibleSince returns the instant from which the job's age counts: it was
// submitted, its begin time has come and its dependencies are met. 0: it is not
// eligible yet.
func (s *Snapshot) eligibleSince(b *v1alpha1.BatchJob, blocked string) int64 {
	since := int64(0)
	if b.Spec.SubmitTime != nil {
		since = b.Spec.SubmitTime.Unix()
	}
	accrueAlways := func(flag string) bool { return strings.EqualFold(flag, "ACCRUE_ALWAYS") }
	if slices.ContainsFunc(s.params.PriorityFlags, accrueAlways) {
		return since
	}
	if status.Reason(blocked).IsDependency() {
		return 0
	}
	since = max(since, earliestStart(b))
	for i := range b.Spec.Job.Dependencies.Items {
		if other := s.jobs[b.Spec.Job.Dependencies.Items[i].JobID]; other != nil && other.Status.EndTime != nil {
			since = max(since, other.Status.EndTime.Unix())
		}
	}
	return since
}

// Priorities returns the computation of the snapshot's priorities.
func (s *Snapshot) Priorities() *priority.Multifactor { return s.policy.priorities }

// PriorityJob returns what the priority of a pending job depends on; ok is false
// for a job that is not pending or is held. It is not safe for concurrent use.
func (s *Snapshot) PriorityJob(id int64) (p priority.Job, ok bool) {
	b := s.jobs[id]
	info, known := s.infos[id]
	if b == nil || !known || b.Spec.Job.Hold != "" {
		return priority.Job{}, false
	}
	part := s.Partition(info.Partition)
	if part == nil {
		return priority.Job{}, false
	}
	out := backfill.Job{}
	s.buildRequest(&out, &b.Spec.Job, part)
	request := s.minimumRequest(&out, b, &info)
	return *s.priorityJob(b, &request, s.blockedReason(b, part)), true
}
