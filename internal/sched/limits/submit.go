package limits

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// RequestOf returns the minimum that a submitted job requests, as far as it is known
// without the nodes and the defaults of the partition.
func RequestOf(j *job.Job, user, partition string) Usage {
	s := &j.Shape
	nodes, tasks := int64(j.LeastNodes()), int64(s.Tasks)
	if tasks == 0 {
		tasks = nodes * int64(max(s.TasksPerNode, 1))
	}
	tasks = min(tasks, math.MaxInt32) // more than any cluster runs; products do not overflow
	cpus := max(tasks*int64(max(s.CPUsPerTask, 1)), nodes*int64(max(s.MinCPUs, 1)))
	if s.Overcommit {
		cpus = nodes * int64(max(s.CPUsPerTask, 1))
	}
	u := Usage{
		Account: j.Account, User: user, QOS: j.QOS, Partition: partition, Nodes: nodes, CPUs: cpus,
	}
	switch {
	case s.MemPerNode != nil:
		u.Memory = *s.MemPerNode * nodes
	case s.MemPerCPU != nil:
		u.Memory = *s.MemPerCPU * cpus
	}
	for _, g := range s.GRES {
		n := g.Count
		switch g.Per {
		case job.PerNode:
			n *= nodes
		case job.PerTask:
			n *= tasks
		}
		u.AddGRES(g.Name, g.Type, n)
	}
	u.Licenses = CountLicenses(j.Licenses)
	if j.Time.Limit > 0 {
		u.Minutes = int64(j.Time.Limit)
	}
	return u
}

// Denied reports whether a QOS with the flag DenyOnLimit refuses the job at
// submission because of its size or time limit. A job without a time limit is not
// refused for it.
func (c *Checker) Denied(u *Usage) bool {
	strict := false
	k := newCheck(c, u)
	for _, name := range c.qosOf(u) {
		q := c.qos[name]
		if !HasFlag(q, "DenyOnLimit") {
			continue
		}
		strict = true
		if k.exceedsQOSLimit(&q.Spec.Limits) {
			return true
		}
	}
	return strict && k.exceedsAssociationLimit()
}

// DefaultWall returns the time limit in minutes of a submitted job that requests none: the
// MaxWall that applies to it, or 0 if there is none.
func (c *Checker) DefaultWall(u *Usage) int32 {
	if !c.enforced {
		return 0
	}
	for _, name := range c.qosOf(u) {
		if q := c.qos[name]; q != nil && q.Spec.Limits.MaxWall > 0 {
			return q.Spec.Limits.MaxWall
		}
	}
	return max(0, nearestLimits(c.levels(u)).MaxWall)
}

func (c *check) exceedsQOSLimit(l *v1alpha1.Limits) bool {
	return firstReason(
		func() string { return c.maxPerJob(l.MaxTRES, "max", qosMax) },
		func() string { return c.maxPerNode(l.MaxTRESPerNode, "maxNode", qosMaxNode) },
		func() string { return c.maxMinutesPerJob(l.MaxTRESMins, "maxMins", qosMaxMins) },
		func() string { return c.minPerJob(l.MinTRES) },
		func() string { return c.maxGivenWall(true, l.MaxWall, "QOSMaxWallDurationPerJobLimit") },
		func() string { return c.maxPerJob(l.GrpTRES, "grp", qosGrp) },
		func() string { return c.maxPerJob(l.MaxTRESUser, "user", qosUser) },
	) != ""
}

func (c *check) exceedsAssociationLimit() bool {
	l := nearestLimits(c.levels(c.usage))
	return firstReason(
		func() string { return c.maxPerJob(l.MaxTRES, "max", assocMax) },
		func() string { return c.maxPerNode(l.MaxTRESPerNode, "maxNode", assocMaxNode) },
		func() string { return c.maxMinutesPerJob(l.MaxTRESMins, "maxMins", assocMaxMins) },
		func() string { return c.maxGivenWall(false, l.MaxWall, "AssocMaxWallDurationPerJobLimit") },
	) != ""
}

// maxGivenWall is maxWall for a job with a time limit.
func (c *check) maxGivenWall(qos bool, limit int32, reason string) string {
	if c.usage.Minutes == 0 {
		return ""
	}
	return c.maxWall(qos, limit, reason)
}

// CheckSubmit returns the limit that forbids the user n more jobs in the queue (0:
// even one), or "". active counts the jobs in the queue that are not final.
func (c *Checker) CheckSubmit(u *Usage, n int, active func(account, user, qos string) int) (reason string) {
	if !c.enforced {
		return ""
	}
	exceeds := func(limit int32, jobs int) bool { return limit > 0 && jobs+n > int(limit) }
	overridden := false
	for _, name := range c.qosOf(u) {
		q := c.qos[name]
		if q == nil {
			continue
		}
		l := &q.Spec.Limits
		perUser := max(l.MaxSubmitJobsPerUser, l.MaxSubmitJobs)
		overridden = overridden || perUser > 0
		switch {
		case exceeds(l.MaxSubmitJobsPerAccount, active(u.Account, "", name)):
			return "MaxSubmitJobsPerAccount"
		case exceeds(perUser, active("", u.User, name)):
			return "QOSMaxSubmitJobPerUserLimit"
		case exceeds(l.GrpSubmitJobs, active("", "", name)):
			return "QOSGrpSubmitJobsLimit"
		}
	}
	levels := c.levels(u)
	for _, l := range levels {
		if limit := l.limits.GrpSubmitJobs; limit > 0 && exceeds(limit, c.activeJobs(l.scope, active)) {
			return "AssocGrpSubmitJobsLimit"
		}
	}
	limit := nearestLimits(levels).MaxSubmitJobs
	if !overridden && exceeds(limit, active(u.Account, u.User, "")) {
		return "AssocMaxSubmitJobLimit"
	}
	return ""
}

// activeJobs returns the number of jobs of an association, or of an account and all
// accounts below it.
func (c *Checker) activeJobs(s scope, active func(account, user, qos string) int) int {
	if s.user != "" {
		return active(s.account, s.user, "")
	}
	sum := 0
	for name := range c.accounts {
		if slices.Contains(c.ancestors(name), s.account) {
			sum += active(name, "", "")
		}
	}
	return sum
}
