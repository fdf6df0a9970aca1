package limits

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// judging is the judgement of one pending job.
type judging struct {
	*Checker
	u *Use
	// seen are the kinds of limits that a QOS has set.
	seen  map[string]bool
	draws []int
}

// texts of a kind of limit, by TRES: the reasons' names are not regular.
type texts map[string]string

func (t texts) of(tres string) string {
	kind, _, _ := strings.Cut(tres, "/")
	return t[kind]
}

// Reasons of Slurm 22.05.8.
var (
	assocGrp = texts{"cpu": "AssocGrpCpuLimit", "mem": "AssocGrpMemLimit", "node": "AssocGrpNodeLimit",
		"gres": "AssocGrpGRES", "license": "AssocGrpLicense", "billing": "AssocGrpBilling"}
	assocGrpMins = texts{"cpu": "AssocGrpCPUMinutesLimit", "mem": "AssocGrpMemMinutes", "node": "AssocGrpNodeMinutes",
		"gres": "AssocGrpGRESMinutes", "license": "AssocGrpLicenseMinutes", "billing": "AssocGrpBillingMinutes"}
	assocGrpRunMins = texts{"cpu": "AssocGrpCPURunMinutesLimit", "mem": "AssocGrpMemRunMinutes", "node": "AssocGrpNodeRunMinutes",
		"gres": "AssocGrpGRESRunMinutes", "license": "AssocGrpLicenseRunMinutes", "billing": "AssocGrpBillingRunMinutes"}
	assocMax = texts{"cpu": "AssocMaxCpuPerJobLimit", "mem": "AssocMaxMemPerJob", "node": "AssocMaxNodePerJobLimit",
		"gres": "AssocMaxGRESPerJob", "license": "AssocMaxLicensePerJob", "billing": "AssocMaxBillingPerJob"}
	assocMaxNode = texts{"cpu": "AssocMaxCpuPerNode", "mem": "AssocMaxMemPerNode", "gres": "AssocMaxGRESPerNode"}
	assocMaxMins = texts{"cpu": "AssocMaxCpuMinutesPerJobLimit", "mem": "AssocMaxMemMinutesPerJob", "node": "AssocMaxNodeMinutesPerJob",
		"gres": "AssocMaxGRESMinutesPerJob", "license": "AssocMaxLicenseMinutesPerJob", "billing": "AssocMaxBillingMinutesPerJob"}

	qosGrp = texts{"cpu": "QOSGrpCpuLimit", "mem": "QOSGrpMemLimit", "node": "QOSGrpNodeLimit",
		"gres": "QOSGrpGRES", "license": "QOSGrpLicense", "billing": "QOSGrpBilling"}
	qosGrpMins = texts{"cpu": "QOSGrpCPUMinutesLimit", "mem": "QOSGrpMemoryMinutes", "node": "QOSGrpNodeMinutes",
		"gres": "QOSGrpGRESMinutes", "license": "QOSGrpLicenseMinutes", "billing": "QOSGrpBillingMinutes"}
	qosGrpRunMins = texts{"cpu": "QOSGrpCPURunMinutesLimit", "mem": "QOSGrpMemoryRunMinutes", "node": "QOSGrpNodeRunMinutes",
		"gres": "QOSGrpGRESRunMinutes", "license": "QOSGrpLicenseRunMinutes", "billing": "QOSGrpBillingRunMinutes"}
	qosMax = texts{"cpu": "QOSMaxCpuPerJobLimit", "mem": "QOSMaxMemoryPerJob", "node": "QOSMaxNodePerJobLimit",
		"gres": "QOSMaxGRESPerJob", "license": "QOSMaxLicensePerJob", "billing": "QOSMaxBillingPerJob"}
	qosMaxNode = texts{"cpu": "QOSMaxCpuPerNode", "mem": "QOSMaxMemoryPerNode", "gres": "QOSMaxGRESPerNode"}
	qosMaxMins = texts{"cpu": "QOSMaxCpuMinutesPerJobLimit", "mem": "QOSMaxMemoryMinutesPerJob", "node": "QOSMaxNodeMinutesPerJob",
		"gres": "QOSMaxGRESMinutesPerJob", "license": "QOSMaxLicenseMinutesPerJob", "billing": "QOSMaxBillingMinutesPerJob"}
	qosMin = texts{"cpu": "QOSMinCpuNotSatisfied", "mem": "QOSMinMemory", "node": "QOSMinNode",
		"gres": "QOSMinGRES", "license": "QOSMinLicense", "billing": "QOSMinBilling"}
	qosUser = texts{"cpu": "QOSMaxCpuPerUserLimit", "mem": "QOSMaxMemoryPerUser", "node": "QOSMaxNodePerUserLimit",
		"gres": "QOSMaxGRESPerUser", "license": "QOSMaxLicensePerUser", "billing": "QOSMaxBillingPerUser"}
	qosAccount = texts{"cpu": "MaxCpuPerAccount", "mem": "MaxMemoryPerAccount", "node": "MaxNodePerAccount",
		"gres": "MaxGRESPerAccount", "license": "MaxLicensePerAccount", "billing": "MaxBillingPerAccount"}
)

// quality applies the limits of a QOS.
func (j *judging) quality(q *v1alpha1.QOS) string {
	l := &q.Spec.Limits
	all, mine := scope{qos: q.Name}, scope{qos: q.Name, user: j.u.User}
	account := scope{qos: q.Name, account: j.u.Account}
	return first(
		func() string { return j.perJob(l.MaxTRES, "max", qosMax) },
		func() string { return j.perNode(l.MaxTRESPerNode, "maxNode", qosMaxNode) },
		func() string { return j.perJobMinutes(l.MaxTRESMins, "maxMins", qosMaxMins) },
		func() string { return j.atLeast(l.MinTRES) },
		func() string { return j.wall(l.MaxWall, "QOSMaxWallDurationPerJobLimit") },
		func() string { return j.minutes(all, l.GrpTRESMins, "grpMins", qosGrpMins) },
		func() string { return j.runMinutes(all, l.GrpTRESRunMins, "grpRunMins", qosGrpRunMins) },
		func() string { return j.groupWall(all, l.GrpWall, "QOSGrpWallLimit") },
		func() string { return j.together(all, l.GrpTRES, "grp", qosGrp) },
		func() string { return j.together(mine, l.MaxTRESUser, "user", qosUser) },
		func() string { return j.together(account, l.MaxTRESPerAccount, "account", qosAccount) },
		func() string { return j.number(all, l.GrpJobs, "grpJobs", "QOSGrpJobsLimit") },
		func() string {
			return j.number(mine, max(l.MaxJobsPerUser, l.MaxJobs), "maxJobs", "QOSMaxJobsPerUserLimit")
		},
		func() string { return j.number(account, l.MaxJobsPerAccount, "accountJobs", "MaxJobsPerAccount") },
	)
}

// association applies the limits of the job's association and of all accounts
// above it, so far as no QOS has set the same.
func (j *judging) association() string {
	own := scope{account: j.u.Account, user: j.u.User}
	chain := j.levels()
	for i := range chain {
		l, s := chain[i].limits, chain[i].scope
		reason := first(
			func() string { return j.minutes(s, l.GrpTRESMins, "grpMins", assocGrpMins) },
			func() string { return j.runMinutes(s, l.GrpTRESRunMins, "grpRunMins", assocGrpRunMins) },
			func() string { return j.groupWall(s, l.GrpWall, "AssocGrpWallLimit") },
			func() string { return j.together(s, l.GrpTRES, "grp", assocGrp) },
			func() string { return j.number(s, l.GrpJobs, "grpJobs", "AssocGrpJobsLimit") },
		)
		if reason != "" {
			return reason
		}
	}
	e := nearest(chain)
	return first(
		func() string { return j.perJob(e.MaxTRES, "max", assocMax) },
		func() string { return j.perNode(e.MaxTRESPerNode, "maxNode", assocMaxNode) },
		func() string { return j.perJobMinutes(e.MaxTRESMins, "maxMins", assocMaxMins) },
		func() string { return j.wall(e.MaxWall, "AssocMaxWallDurationPerJobLimit") },
		func() string { return j.number(own, e.MaxJobs, "maxJobs", "AssocMaxJobsLimit") },
	)
}

func first(checks ...func() string) string {
	for _, check := range checks {
		if r := check(); r != "" {
			return r
		}
	}
	return ""
}

// level is one association or account with its limits.
type level struct {
	scope  scope
	limits *v1alpha1.Limits
}

// levels are the job's association and the accounts above it.
func (j *judging) levels() []level { return j.Checker.levels(j.u.Account, j.u.User, j.u.Partition) }

func (c *Checker) levels(account, user, partition string) []level {
	var out []level
	if u := c.users[user]; u != nil {
		var best *v1alpha1.Association
		for i := range u.Spec.Associations {
			a := &u.Spec.Associations[i]
			if a.Account == account && (a.Partition == partition || a.Partition == "" && best == nil) {
				best = a
			}
		}
		if best != nil {
			out = append(out, level{scope{account: account, user: user}, &best.Limits})
		}
	}
	for _, name := range c.chain(account) {
		if a := c.accounts[name]; a != nil {
			out = append(out, level{scope{account: name}, &a.Spec.Limits})
		}
	}
	return out
}

// nearest are the limits of one job or user, each from the first level that
// has it.
func nearest(chain []level) v1alpha1.Limits {
	var e v1alpha1.Limits
	for _, l := range chain {
		e.MaxTRES = inherit(e.MaxTRES, l.limits.MaxTRES)
		e.MaxTRESPerNode = inherit(e.MaxTRESPerNode, l.limits.MaxTRESPerNode)
		e.MaxTRESMins = inherit(e.MaxTRESMins, l.limits.MaxTRESMins)
		for _, f := range [][2]*int32{{&e.MaxWall, &l.limits.MaxWall}, {&e.MaxJobs, &l.limits.MaxJobs}, {&e.MaxSubmitJobs, &l.limits.MaxSubmitJobs}} {
			if *f[0] == 0 {
				*f[0] = *f[1]
			}
		}
	}
	return e
}

func inherit(have, from map[string]int64) map[string]int64 {
	if len(from) == 0 {
		return have
	}
	out := maps.Clone(from)
	maps.Copy(out, have)
	return out
}

// fresh tells whether no QOS before has this kind of limit.
func (j *judging) fresh(kind string) bool { return !j.seen[kind] }

func (j *judging) note(s scope, kind string) {
	if s.qos != "" {
		j.seen[kind] = true
	}
}

// each calls check for every TRES limit that counts.
func (j *judging) each(s scope, limits map[string]int64, kind string, check func(tres string, most int64) string) string {
	for _, tres := range slices.Sorted(maps.Keys(limits)) {
		if limits[tres] < 0 || !j.fresh(kind+" "+tres) {
			continue
		}
		j.note(s, kind+" "+tres)
		if r := check(tres, limits[tres]); r != "" {
			return r
		}
	}
	return ""
}

// own is a scope that stands for the QOS or the association of the reasons t.
func own(qos bool) scope {
	if qos {
		return scope{qos: "*"}
	}
	return scope{}
}

func isQOS(t texts) bool { return strings.HasPrefix(t["cpu"], "QOS") }

func (j *judging) perJob(limits map[string]int64, kind string, t texts) string {
	return j.each(own(isQOS(t)), limits, kind, func(tres string, most int64) string {
		if n, ok := j.u.of(tres); ok && n > most {
			return t.of(tres)
		}
		return ""
	})
}

func (j *judging) perNode(limits map[string]int64, kind string, t texts) string {
	return j.each(own(isQOS(t)), limits, kind, func(tres string, most int64) string {
		nodes := max(1, j.u.Nodes)
		if n, ok := j.u.of(tres); ok && (n+nodes-1)/nodes > most {
			return t.of(tres)
		}
		return ""
	})
}

func (j *judging) perJobMinutes(limits map[string]int64, kind string, t texts) string {
	return j.each(own(isQOS(t)), limits, kind, func(tres string, most int64) string {
		if n, ok := j.u.of(tres); ok && j.u.Minutes > 0 && n*j.u.Minutes > most {
			return t.of(tres)
		}
		return ""
	})
}

func (j *judging) atLeast(limits map[string]int64) string {
	for _, tres := range slices.Sorted(maps.Keys(limits)) {
		if n, ok := j.u.of(tres); ok && n < limits[tres] {
			return qosMin.of(tres)
		}
	}
	return ""
}

func (j *judging) wall(most int32, reason string) string {
	s := own(strings.HasPrefix(reason, "QOS"))
	if most <= 0 || !j.fresh("wall") {
		return ""
	}
	j.note(s, "wall")
	if j.u.Minutes == 0 || j.u.Minutes > int64(most) {
		return reason
	}
	return ""
}

// minutes: what was used up to now, and what runs would use up to its end, must
// leave something; with Safe, enough for the whole job.
func (j *judging) minutes(s scope, limits map[string]int64, kind string, t texts) string {
	return j.each(s, limits, kind, func(tres string, most int64) string {
		used := j.used[s][tres]
		if n, ok := j.u.of(tres); used >= float64(most) || j.safe && ok && used+float64(n*j.u.Minutes) > float64(most) {
			return t.of(tres)
		}
		return ""
	})
}

func (j *judging) runMinutes(s scope, limits map[string]int64, kind string, t texts) string {
	return j.each(s, limits, kind, func(tres string, most int64) string {
		var running int64
		if l := j.left[s]; l != nil {
			running, _ = l.of(tres)
		}
		if n, ok := j.u.of(tres); ok && n*j.u.Minutes+running > most {
			return t.of(tres)
		}
		return ""
	})
}

// groupWall: the wall-clock minutes that all jobs used.
func (j *judging) groupWall(s scope, most int32, reason string) string {
	if most <= 0 || !j.fresh("grpWall") {
		return ""
	}
	j.note(s, "grpWall")
	if j.used[s][WallMinutes] >= float64(most) {
		return reason
	}
	return ""
}

// WallMinutes is the name in Input.Minutes of the time that jobs ran.
const WallMinutes = "wall"

// together: what all jobs of the scope may hold. The plan draws on it; a TRES
// that the plan cannot count is checked here against what runs.
func (j *judging) together(s scope, limits map[string]int64, kind string, t texts) string {
	return j.each(s, limits, kind, func(tres string, most int64) string {
		var held int64
		if r := j.running[s]; r != nil {
			held, _ = r.of(tres)
		}
		n, ok := j.u.of(tres)
		if !ok || n == 0 {
			return ""
		}
		what, countable := quantity(tres)
		if !countable || n > most {
			if held+n > most {
				return t.of(tres)
			}
			return ""
		}
		gres := strings.TrimPrefix(tres, "gres/")
		if what != backfill.QuantityGRES {
			gres = ""
		}
		c := j.Checker
		j.draw(budget{s, t.of(tres), gres}, backfill.Limit{Reason: t.of(tres), Quantity: what, GRES: gres}, func() int64 {
			var held int64
			if r := c.running[s]; r != nil {
				held, _ = r.of(tres)
			}
			return most - held
		})
		return ""
	})
}

func quantity(tres string) (backfill.Quantity, bool) {
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

// number: how many jobs of the scope may run.
func (j *judging) number(s scope, most int32, kind, reason string) string {
	if most <= 0 || !j.fresh(kind) {
		return ""
	}
	j.note(s, kind)
	c := j.Checker
	j.draw(budget{s, reason, ""}, backfill.Limit{Reason: reason, Quantity: backfill.QuantityJobs}, func() int64 { return int64(most) - c.jobs[s] })
	return ""
}

// draw adds the limit to those that the job's start draws on. left says what
// there is of it.
func (j *judging) draw(b budget, l backfill.Limit, left func() int64) {
	i, ok := j.index[b]
	if !ok {
		i = len(j.Limits)
		l.Left = left()
		j.Limits = append(j.Limits, l)
		j.remains = append(j.remains, left)
		j.index[b] = i
		j.within[b.scope] = append(j.within[b.scope], i)
	}
	j.draws = append(j.draws, i)
}

// Submitted tells which limit forbids the user n more jobs in the queue (0: not
// even one); "": none does. active counts the jobs in the queue that are not
// over; of an account, those of the accounts below it as well.
func (c *Checker) Submitted(u *Use, n int, active func(account, user, qos string) int) (reason string) {
	if !c.any {
		return ""
	}
	below := func(account string) int {
		sum := 0
		for name := range c.accounts {
			if slices.Contains(c.chain(name), account) {
				sum += active(name, "", "")
			}
		}
		return sum
	}
	over := func(most int32, have int) bool { return most > 0 && have+n > int(most) }
	set := false
	for _, name := range c.qosOf(u) {
		q := c.qos[name]
		if q == nil {
			continue
		}
		l := &q.Spec.Limits
		perUser := max(l.MaxSubmitJobsPerUser, l.MaxSubmitJobs)
		set = set || perUser > 0
		switch {
		case over(l.MaxSubmitJobsPerAccount, active(u.Account, "", name)):
			return "MaxSubmitJobsPerAccount"
		case over(perUser, active("", u.User, name)):
			return "QOSMaxSubmitJobPerUserLimit"
		case over(l.GrpSubmitJobs, active("", "", name)):
			return "QOSGrpSubmitJobsLimit"
		}
	}
	chain := c.levels(u.Account, u.User, u.Partition)
	for _, l := range chain {
		have := 0
		if l.limits.GrpSubmitJobs > 0 {
			if l.scope.user != "" {
				have = active(l.scope.account, l.scope.user, "")
			} else {
				have = below(l.scope.account)
			}
		}
		if over(l.limits.GrpSubmitJobs, have) {
			return "AssocGrpSubmitJobsLimit"
		}
	}
	e := nearest(chain)
	if !set && over(e.MaxSubmitJobs, active(u.Account, u.User, "")) {
		return "AssocMaxSubmitJobLimit"
	}
	return ""
}
