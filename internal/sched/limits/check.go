package limits

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// check is the check of one pending job.
type check struct {
	*Checker
	usage *Usage
	// overridden are the kinds of limits that a QOS has set; the association's
	// do not apply.
	overridden map[string]bool
	budgets    []int
}

func newCheck(c *Checker, u *Usage) *check {
	return &check{Checker: c, usage: u, overridden: map[string]bool{}}
}

// reasons are the reasons of one kind of limit by TRES, because Slurm's names are not
// regular. qos reports whether the limit is one of a QOS.
type reasons struct {
	qos    bool
	byTRES map[string]string
}

func (r reasons) of(tres string) string {
	kind, _, _ := strings.Cut(tres, "/")
	return r.byTRES[kind]
}

// Reasons of Slurm 22.05.8.
var (
	assocGrp = reasons{false, map[string]string{
		"cpu":     "AssocGrpCpuLimit",
		"mem":     "AssocGrpMemLimit",
		"node":    "AssocGrpNodeLimit",
		"gres":    "AssocGrpGRES",
		"license": "AssocGrpLicense",
		"billing": "AssocGrpBilling",
	}}
	assocGrpMins = reasons{false, map[string]string{
		"cpu":     "AssocGrpCPUMinutesLimit",
		"mem":     "AssocGrpMemMinutes",
		"node":    "AssocGrpNodeMinutes",
		"gres":    "AssocGrpGRESMinutes",
		"license": "AssocGrpLicenseMinutes",
		"billing": "AssocGrpBillingMinutes",
	}}
	assocGrpRunMins = reasons{false, map[string]string{
		"cpu":     "AssocGrpCPURunMinutesLimit",
		"mem":     "AssocGrpMemRunMinutes",
		"node":    "AssocGrpNodeRunMinutes",
		"gres":    "AssocGrpGRESRunMinutes",
		"license": "AssocGrpLicenseRunMinutes",
		"billing": "AssocGrpBillingRunMinutes",
	}}
	assocMax = reasons{false, map[string]string{
		"cpu":     "AssocMaxCpuPerJobLimit",
		"mem":     "AssocMaxMemPerJob",
		"node":    "AssocMaxNodePerJobLimit",
		"gres":    "AssocMaxGRESPerJob",
		"license": "AssocMaxLicensePerJob",
		"billing": "AssocMaxBillingPerJob",
	}}
	assocMaxNode = reasons{false, map[string]string{
		"cpu":  "AssocMaxCpuPerNode",
		"mem":  "AssocMaxMemPerNode",
		"gres": "AssocMaxGRESPerNode",
	}}
	assocMaxMins = reasons{false, map[string]string{
		"cpu":     "AssocMaxCpuMinutesPerJobLimit",
		"mem":     "AssocMaxMemMinutesPerJob",
		"node":    "AssocMaxNodeMinutesPerJob",
		"gres":    "AssocMaxGRESMinutesPerJob",
		"license": "AssocMaxLicenseMinutesPerJob",
		"billing": "AssocMaxBillingMinutesPerJob",
	}}

	qosGrp = reasons{true, map[string]string{
		"cpu":     "QOSGrpCpuLimit",
		"mem":     "QOSGrpMemLimit",
		"node":    "QOSGrpNodeLimit",
		"gres":    "QOSGrpGRES",
		"license": "QOSGrpLicense",
		"billing": "QOSGrpBilling",
	}}
	qosGrpMins = reasons{true, map[string]string{
		"cpu":     "QOSGrpCPUMinutesLimit",
		"mem":     "QOSGrpMemoryMinutes",
		"node":    "QOSGrpNodeMinutes",
		"gres":    "QOSGrpGRESMinutes",
		"license": "QOSGrpLicenseMinutes",
		"billing": "QOSGrpBillingMinutes",
	}}
	qosGrpRunMins = reasons{true, map[string]string{
		"cpu":     "QOSGrpCPURunMinutesLimit",
		"mem":     "QOSGrpMemoryRunMinutes",
		"node":    "QOSGrpNodeRunMinutes",
		"gres":    "QOSGrpGRESRunMinutes",
		"license": "QOSGrpLicenseRunMinutes",
		"billing": "QOSGrpBillingRunMinutes",
	}}
	qosMax = reasons{true, map[string]string{
		"cpu":     "QOSMaxCpuPerJobLimit",
		"mem":     "QOSMaxMemoryPerJob",
		"node":    "QOSMaxNodePerJobLimit",
		"gres":    "QOSMaxGRESPerJob",
		"license": "QOSMaxLicensePerJob",
		"billing": "QOSMaxBillingPerJob",
	}}
	qosMaxNode = reasons{true, map[string]string{
		"cpu":  "QOSMaxCpuPerNode",
		"mem":  "QOSMaxMemoryPerNode",
		"gres": "QOSMaxGRESPerNode",
	}}
	qosMaxMins = reasons{true, map[string]string{
		"cpu":     "QOSMaxCpuMinutesPerJobLimit",
		"mem":     "QOSMaxMemoryMinutesPerJob",
		"node":    "QOSMaxNodeMinutesPerJob",
		"gres":    "QOSMaxGRESMinutesPerJob",
		"license": "QOSMaxLicenseMinutesPerJob",
		"billing": "QOSMaxBillingMinutesPerJob",
	}}
	qosMin = reasons{true, map[string]string{
		"cpu":     "QOSMinCpuNotSatisfied",
		"mem":     "QOSMinMemory",
		"node":    "QOSMinNode",
		"gres":    "QOSMinGRES",
		"license": "QOSMinLicense",
		"billing": "QOSMinBilling",
	}}

	qosUser = reasons{true, map[string]string{
		"cpu":     "QOSMaxCpuPerUserLimit",
		"mem":     "QOSMaxMemoryPerUser",
		"node":    "QOSMaxNodePerUserLimit",
		"gres":    "QOSMaxGRESPerUser",
		"license": "QOSMaxLicensePerUser",
		"billing": "QOSMaxBillingPerUser",
	}}
	qosAccount = reasons{true, map[string]string{
		"cpu":     "MaxCpuPerAccount",
		"mem":     "MaxMemoryPerAccount",
		"node":    "MaxNodePerAccount",
		"gres":    "MaxGRESPerAccount",
		"license": "MaxLicensePerAccount",
		"billing": "MaxBillingPerAccount",
	}}
)

// checkQOS applies the limits of a QOS.
func (c *check) checkQOS(q *v1alpha1.QOS) string {
	l := &q.Spec.Limits
	all := scope{qos: q.Name}
	user, account := scope{qos: q.Name, user: c.usage.User}, scope{qos: q.Name, account: c.usage.Account}
	maxJobsPerUser := max(l.MaxJobsPerUser, l.MaxJobs)
	return firstReason(
		func() string { return c.maxPerJob(l.MaxTRES, "max", qosMax) },
		func() string { return c.maxPerNode(l.MaxTRESPerNode, "maxNode", qosMaxNode) },
		func() string { return c.maxMinutesPerJob(l.MaxTRESMins, "maxMins", qosMaxMins) },
		func() string { return c.minPerJob(l.MinTRES) },
		func() string { return c.maxWall(true, l.MaxWall, "QOSMaxWallDurationPerJobLimit") },
		func() string { return c.groupMinutes(all, l.GrpTRESMins, "grpMins", qosGrpMins) },
		func() string { return c.groupRunMinutes(all, l.GrpTRESRunMins, "grpRunMins", qosGrpRunMins) },
		func() string { return c.groupWall(all, l.GrpWall, "QOSGrpWallLimit") },
		func() string { return c.groupTRES(all, l.GrpTRES, "grp", qosGrp) },
		func() string { return c.groupTRES(user, l.MaxTRESUser, "user", qosUser) },
		func() string { return c.groupTRES(account, l.MaxTRESPerAccount, "account", qosAccount) },
		func() string { return c.groupJobs(all, l.GrpJobs, "grpJobs", "QOSGrpJobsLimit") },
		func() string { return c.groupJobs(user, maxJobsPerUser, "maxJobs", "QOSMaxJobsPerUserLimit") },
		func() string { return c.groupJobs(account, l.MaxJobsPerAccount, "accountJobs", "MaxJobsPerAccount") },
	)
}

// checkAssociation applies the limits of the job's association and of all accounts
// above it, except those that a QOS overrides.
func (c *check) checkAssociation() string {
	association := scope{account: c.usage.Account, user: c.usage.User}
	levels := c.levels(c.usage)
	for i := range levels {
		l, s := levels[i].limits, levels[i].scope
		reason := firstReason(
			func() string { return c.groupMinutes(s, l.GrpTRESMins, "grpMins", assocGrpMins) },
			func() string { return c.groupRunMinutes(s, l.GrpTRESRunMins, "grpRunMins", assocGrpRunMins) },
			func() string { return c.groupWall(s, l.GrpWall, "AssocGrpWallLimit") },
			func() string { return c.groupTRES(s, l.GrpTRES, "grp", assocGrp) },
			func() string { return c.groupJobs(s, l.GrpJobs, "grpJobs", "AssocGrpJobsLimit") },
		)
		if reason != "" {
			return reason
		}
	}
	l := nearestLimits(levels)
	return firstReason(
		func() string { return c.maxPerJob(l.MaxTRES, "max", assocMax) },
		func() string { return c.maxPerNode(l.MaxTRESPerNode, "maxNode", assocMaxNode) },
		func() string { return c.maxMinutesPerJob(l.MaxTRESMins, "maxMins", assocMaxMins) },
		func() string { return c.maxWall(false, l.MaxWall, "AssocMaxWallDurationPerJobLimit") },
		func() string { return c.groupJobs(association, l.MaxJobs, "maxJobs", "AssocMaxJobsLimit") },
	)
}

func firstReason(checks ...func() string) string {
	for _, check := range checks {
		if r := check(); r != "" {
			return r
		}
	}
	return ""
}

// level is an association or an account with its limits.
type level struct {
	scope  scope
	limits *v1alpha1.Limits
}

// levels returns the job's association and the accounts above it.
func (c *Checker) levels(usage *Usage) []level {
	var out []level
	if a := c.association(usage); a != nil {
		out = append(out, level{scope{account: usage.Account, user: usage.User}, &a.Limits})
	}
	for _, name := range c.ancestors(usage.Account) {
		if a := c.accounts[name]; a != nil {
			out = append(out, level{scope{account: name}, &a.Spec.Limits})
		}
	}
	return out
}

// association returns the user's association with the account: that of the job's
// partition, else the one for all partitions, else nil.
func (c *Checker) association(usage *Usage) *v1alpha1.Association {
	u := c.users[usage.User]
	if u == nil {
		return nil
	}
	var best *v1alpha1.Association
	for i := range u.Spec.Associations {
		a := &u.Spec.Associations[i]
		if a.Account != usage.Account {
			continue
		}
		if a.Partition == usage.Partition || a.Partition == "" && best == nil {
			best = a
		}
	}
	return best
}

// nearestLimits returns the limits of one job or user, each from the first level
// that has it.
func nearestLimits(levels []level) v1alpha1.Limits {
	var out v1alpha1.Limits
	for _, l := range levels {
		out.MaxTRES = inherit(out.MaxTRES, l.limits.MaxTRES)
		out.MaxTRESPerNode = inherit(out.MaxTRESPerNode, l.limits.MaxTRESPerNode)
		out.MaxTRESMins = inherit(out.MaxTRESMins, l.limits.MaxTRESMins)
		out.MaxWall = cmp.Or(out.MaxWall, l.limits.MaxWall)
		out.MaxJobs = cmp.Or(out.MaxJobs, l.limits.MaxJobs)
		out.MaxSubmitJobs = cmp.Or(out.MaxSubmitJobs, l.limits.MaxSubmitJobs)
	}
	return out
}

// inherit returns the limits of a level, with those of the level above that it does
// not have.
func inherit(limits, above map[string]int64) map[string]int64 {
	if len(above) == 0 {
		return limits
	}
	out := maps.Clone(above)
	maps.Copy(out, limits)
	return out
}

// overrides records, for a limit of a QOS, that limits of this kind which follow do
// not apply.
func (c *check) overrides(qos bool, kind string) {
	if qos {
		c.overridden[kind] = true
	}
}

// eachTRES calls exceeded for the limit of every TRES that applies, and returns the
// reason of the first that is exceeded.
func (c *check) eachTRES(
	limits map[string]int64, kind string, r reasons, exceeded func(tres string, limit int64) bool,
) string {
	for _, tres := range slices.Sorted(maps.Keys(limits)) {
		key := kind + " " + tres
		if limits[tres] < 0 || c.overridden[key] {
			continue
		}
		c.overrides(r.qos, key)
		if exceeded(tres, limits[tres]) {
			return r.of(tres)
		}
	}
	return ""
}

// maxPerJob checks what one job may request.
func (c *check) maxPerJob(limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		n, ok := c.usage.amount(tres)
		return ok && n > limit
	})
}

// maxPerNode checks what one job may request on each node.
func (c *check) maxPerNode(limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		nodes := max(1, c.usage.Nodes)
		n, ok := c.usage.amount(tres)
		return ok && (n+nodes-1)/nodes > limit
	})
}

// maxMinutesPerJob checks what one job may use until its time limit.
func (c *check) maxMinutesPerJob(limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		n, ok := c.usage.amount(tres)
		return ok && c.usage.Minutes > 0 && n*c.usage.Minutes > limit
	})
}

// minPerJob checks what one job must request at least.
func (c *check) minPerJob(limits map[string]int64) string {
	for _, tres := range slices.Sorted(maps.Keys(limits)) {
		if n, ok := c.usage.amount(tres); ok && n < limits[tres] {
			return qosMin.of(tres)
		}
	}
	return ""
}

// maxWall checks the time limit of one job. qos reports whether the limit is one of a
// QOS.
func (c *check) maxWall(qos bool, limit int32, reason string) string {
	if limit <= 0 || c.overridden["wall"] {
		return ""
	}
	c.overrides(qos, "wall")
	if c.usage.Minutes == 0 || c.usage.Minutes > int64(limit) {
		return reason
	}
	return ""
}

// groupMinutes checks what all jobs of the scope have used: something of the limit
// must be left or, with Safe, enough for the whole job.
func (c *check) groupMinutes(s scope, limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		used := c.used[s][tres]
		if used >= float64(limit) {
			return true
		}
		n, ok := c.usage.amount(tres)
		return c.safe && ok && used+float64(n*c.usage.Minutes) > float64(limit)
	})
}

// groupRunMinutes checks what the running jobs of the scope and this job may use
// until their time limits.
func (c *check) groupRunMinutes(s scope, limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		running := amountIn(c.runMinutes, s, tres)
		n, ok := c.usage.amount(tres)
		return ok && n*c.usage.Minutes+running > limit
	})
}

// groupWall checks the minutes that all jobs of the scope ran.
func (c *check) groupWall(s scope, limit int32, reason string) string {
	if limit <= 0 || c.overridden["grpWall"] {
		return ""
	}
	c.overrides(s.qos != "", "grpWall")
	if c.used[s][WallMinutes] >= float64(limit) {
		return reason
	}
	return ""
}

// groupTRES applies a limit on what all jobs of the scope may hold. It becomes a
// budget of the plan; a TRES that the plan cannot count is checked here against the
// running jobs.
func (c *check) groupTRES(s scope, limits map[string]int64, kind string, r reasons) string {
	return c.eachTRES(limits, kind, r, func(tres string, limit int64) bool {
		n, ok := c.usage.amount(tres)
		if !ok || n == 0 {
			return false
		}
		q, countable := quantity(tres)
		if !countable || n > limit {
			return amountIn(c.running, s, tres)+n > limit
		}
		gres := ""
		if q == backfill.QuantityGRES {
			gres = strings.TrimPrefix(tres, "gres/")
		}
		checker, reason := c.Checker, r.of(tres)
		c.drawOn(budget{s, reason, gres}, backfill.Limit{Reason: reason, Quantity: q, GRES: gres}, func() int64 {
			return limit - amountIn(checker.running, s, tres)
		})
		return false
	})
}

// amountIn returns the amount of a TRES in a scope; 0 if there is none.
func amountIn(usages map[scope]*Usage, s scope, tres string) int64 {
	u := usages[s]
	if u == nil {
		return 0
	}
	n, _ := u.amount(tres)
	return n
}

// quantity returns the planner's quantity of a TRES; ok is false if the planner
// cannot count it.
func quantity(tres string) (q backfill.Quantity, ok bool) {
	switch {
	case tres == "cpu":
		return backfill.QuantityCPUs, true
	case tres == "billing":
		return backfill.QuantityBilling, true
	case tres == "node":
		return backfill.QuantityNodes, true
	case tres == "mem":
		return backfill.QuantityMemory, true
	case strings.HasPrefix(tres, "gres/"):
		return backfill.QuantityGRES, true
	}
	return 0, false
}

// groupJobs applies a limit on the number of running jobs of the scope, as a budget
// of the plan.
func (c *check) groupJobs(s scope, limit int32, kind, reason string) string {
	if limit <= 0 || c.overridden[kind] {
		return ""
	}
	c.overrides(s.qos != "", kind)
	checker := c.Checker
	c.drawOn(budget{s, reason, ""}, backfill.Limit{Reason: reason, Quantity: backfill.QuantityJobs}, func() int64 {
		return int64(limit) - checker.jobs[s]
	})
	return ""
}

// drawOn adds the budget to those that the job's start draws on. remaining returns
// what is left of it.
func (c *check) drawOn(b budget, l backfill.Limit, remaining func() int64) {
	i, ok := c.index[b]
	if !ok {
		i = len(c.Limits)
		l.Left = remaining()
		c.Limits = append(c.Limits, l)
		c.remaining = append(c.remaining, remaining)
		c.index[b] = i
		c.limitsOf[b.scope] = append(c.limitsOf[b.scope], i)
	}
	c.budgets = append(c.budgets, i)
}
