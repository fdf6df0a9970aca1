// Package limits applies the limits of accounts, associations and QOS to
// pending jobs, under Slurm's reasons (sacctmgr(1); squeue(1), JOB REASON
// CODES). It is pure.
//
// A limit of the QOS overrides the same limit of the association. Group limits
// apply at every account above; limits of one job or one user are those of the
// nearest association or account that has one.
package limits

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// Usage is what a job holds, or the least that it requests.
type Usage struct {
	Account, User, QOS, Partition string
	CPUs, Nodes                   int64
	Memory                        int64            // MiB
	GRES                          map[string]int64 // by name, and by name:type
	Licenses                      map[string]int64
	// Billing is what the job is billed, if Billed; else its CPUs count.
	Billing int64
	Billed  bool
	// Minutes is a pending job's time limit, or what a running job has left of
	// it; 0: no limit.
	Minutes int64
}

// Association returns the association that the usage counts for.
func (u *Usage) Association() status.AssociationKey {
	return status.AssociationKey{Account: u.Account, User: u.User}
}

// AddGRES adds n of a generic resource.
func (u *Usage) AddGRES(name, kind string, n int64) {
	if u.GRES == nil {
		u.GRES = map[string]int64{}
	}
	u.GRES[name] += n
	if kind != "" {
		u.GRES[name+":"+kind] += n
	}
}

// CountLicenses returns the number of licenses by name; nil for none.
func CountLicenses(list []job.License) map[string]int64 {
	if len(list) == 0 {
		return nil
	}
	out := map[string]int64{}
	for _, l := range list {
		out[l.Name] += int64(l.Count)
	}
	return out
}

// amount returns the amount of a TRES by Slurm's name; ok is false for one that is
// not counted.
func (u *Usage) amount(tres string) (n int64, ok bool) {
	switch {
	case tres == "billing" && u.Billed:
		return u.Billing, true
	case tres == "cpu", tres == "billing":
		return u.CPUs, true
	case tres == "mem":
		return u.Memory, true
	case tres == "node":
		return u.Nodes, true
	case strings.HasPrefix(tres, "gres/"):
		return u.GRES[strings.TrimPrefix(tres, "gres/")], true
	case strings.HasPrefix(tres, "license/"):
		return u.Licenses[strings.TrimPrefix(tres, "license/")], true
	}
	return 0, false
}

// add adds o times the factor. A sum is Billed: it counts what each job is billed.
func (u *Usage) add(o *Usage, factor int64) {
	billing, _ := o.amount("billing")
	u.Billing, u.Billed = u.Billing+billing*factor, true
	u.CPUs += o.CPUs * factor
	u.Nodes += o.Nodes * factor
	u.Memory += o.Memory * factor
	addCounts(&u.GRES, o.GRES, factor)
	addCounts(&u.Licenses, o.Licenses, factor)
}

func addCounts(to *map[string]int64, more map[string]int64, factor int64) {
	for k, n := range more {
		if *to == nil {
			*to = map[string]int64{}
		}
		(*to)[k] += n * factor
	}
}

// Input is everything that the limits depend on. The objects are only read.
type Input struct {
	Accounts   []*v1alpha1.Account
	Users      []*v1alpha1.User
	QOS        []*v1alpha1.QOS
	Partitions []*v1alpha1.Partition
	Running    []Usage
	// Minutes of each TRES that an association has used, decayed.
	Minutes map[status.AssociationKey]map[string]float64
	// MinutesOfQOS is the same for each QOS.
	MinutesOfQOS map[string]map[string]float64
	// Enforce is the Cluster's accountingStorageEnforce.
	Enforce []string
}

// WallMinutes is the name in Input.Minutes of the time that jobs ran.
const WallMinutes = "wall"

// Checker checks pending jobs against the limits. It is made for one snapshot and
// is not safe for concurrent use.
type Checker struct {
	accounts     map[string]*v1alpha1.Account
	users        map[string]*v1alpha1.User
	qos          map[string]*v1alpha1.QOS
	partitionQOS map[string]string // by partition
	in           *Input

	// Limits are the budgets that the starts of pending jobs draw on.
	Limits     []backfill.Limit
	index      map[budget]int
	remaining  []func() int64 // what is left of each of Limits now
	limitsOf   map[scope][]int
	enforced   bool // some limit may apply
	safe       bool // Enforcement.Safe
	running    map[scope]*Usage
	jobs       map[scope]int64
	runMinutes map[scope]*Usage // of running jobs: amounts times the minutes left
	used       map[scope]map[string]float64
}

// scope is whose jobs a limit counts; empty fields stand for all.
type scope struct{ account, user, qos string }

// budget identifies one entry of Limits.
type budget struct {
	scope
	reason string
	gres   string
}

// New returns a Checker.
func New(in *Input) *Checker {
	c := &Checker{
		in:           in,
		accounts:     map[string]*v1alpha1.Account{},
		users:        map[string]*v1alpha1.User{},
		qos:          map[string]*v1alpha1.QOS{},
		partitionQOS: map[string]string{},
		index:        map[budget]int{},
		limitsOf:     map[scope][]int{},
		running:      map[scope]*Usage{},
		jobs:         map[scope]int64{},
		runMinutes:   map[scope]*Usage{},
		used:         map[scope]map[string]float64{},
	}
	for _, a := range in.Accounts {
		c.accounts[a.Name] = a
		c.enforced = true
	}
	for _, u := range in.Users {
		c.users[u.Name] = u
		c.enforced = c.enforced || len(u.Spec.Associations) > 0
	}
	for _, q := range in.QOS {
		c.qos[q.Name] = q
		c.enforced = true
	}
	for _, p := range in.Partitions {
		c.partitionQOS[p.Name] = p.Spec.QOS
	}
	enforcement := Enforced(in.Enforce)
	if c.safe = enforcement.Safe; !enforcement.Limits {
		c.enforced = false
	}
	if c.enforced {
		c.countUsage()
	}
	return c
}

// countUsage adds up what running jobs hold, and what was used, in every scope
// that a limit may have.
func (c *Checker) countUsage() {
	for i := range c.in.Running {
		c.countRunning(&c.in.Running[i], 1)
	}
	for name, tres := range c.in.MinutesOfQOS {
		c.used[scope{qos: name}] = tres
	}
	for k, tres := range c.in.Minutes {
		for _, s := range c.scopes(&Usage{Account: k.Account, User: k.User}) {
			if c.used[s] == nil {
				c.used[s] = map[string]float64{}
			}
			for name, n := range tres {
				c.used[s][name] += n
			}
		}
	}
}

// countRunning adds a running job in each of its scopes, or removes it if sign is
// -1, and returns the scopes.
func (c *Checker) countRunning(u *Usage, sign int64) []scope {
	all := c.scopes(u)
	for _, s := range all {
		c.jobs[s] += sign
		if c.running[s] == nil {
			c.running[s], c.runMinutes[s] = &Usage{}, &Usage{}
		}
		c.running[s].add(u, sign)
		c.runMinutes[s].add(u, sign*u.Minutes)
	}
	return all
}

// Add updates Limits after a job that holds u has started.
func (c *Checker) Add(u *Usage) { c.update(u, 1) }

// Remove updates Limits after a job that held u has ended.
func (c *Checker) Remove(u *Usage) { c.update(u, -1) }

func (c *Checker) update(u *Usage, sign int64) {
	if !c.enforced {
		return
	}
	for _, s := range c.countRunning(u, sign) {
		for _, i := range c.limitsOf[s] {
			c.Limits[i].Left = c.remaining[i]()
		}
	}
}

// OnlyBudgetsChange reports whether the start or end of a job changes nothing but
// Limits, so that what Check returned for other jobs stays true.
func (c *Checker) OnlyBudgetsChange() bool {
	for _, a := range c.accounts {
		if !isBudgeted(&a.Spec.Limits) {
			return false
		}
	}
	for _, q := range c.qos {
		if !isBudgeted(&q.Spec.Limits) {
			return false
		}
	}
	for _, u := range c.users {
		for i := range u.Spec.Associations {
			if !isBudgeted(&u.Spec.Associations[i].Limits) {
				return false
			}
		}
	}
	return true
}

// isBudgeted reports whether the planner can count every limit that depends on
// running jobs.
func isBudgeted(l *v1alpha1.Limits) bool {
	for _, group := range []map[string]int64{l.GrpTRES, l.MaxTRESUser, l.MaxTRESPerAccount} {
		for tres := range group {
			if _, countable := quantity(tres); !countable {
				return false
			}
		}
	}
	return len(l.GrpTRESRunMins) == 0
}

// scopes returns all scopes that a job counts in.
func (c *Checker) scopes(u *Usage) []scope {
	out := []scope{{account: u.Account, user: u.User}}
	for _, name := range c.ancestors(u.Account) {
		out = append(out, scope{account: name})
	}
	for _, q := range c.qosOf(u) {
		out = append(out, scope{qos: q}, scope{qos: q, user: u.User}, scope{qos: q, account: u.Account})
	}
	return out
}

// HasFlag reports whether the QOS has the flag; nil has none.
func HasFlag(q *v1alpha1.QOS, flag string) bool {
	return q != nil && slices.ContainsFunc(q.Spec.Flags, func(f string) bool { return strings.EqualFold(f, flag) })
}

// Overridden returns the partition's limits as they apply to jobs in the QOS, which
// may exempt them from some (sacctmgr(1), PartitionMaxNodes and the like). It
// returns p itself if all apply.
func Overridden(p *v1alpha1.PartitionSpec, q *v1alpha1.QOS) *v1alpha1.PartitionSpec {
	if q == nil || len(q.Spec.Flags) == 0 {
		return p
	}
	out := *p
	if HasFlag(q, "PartitionMaxNodes") {
		out.MaxNodes = 0
	}
	if HasFlag(q, "PartitionMinNodes") {
		out.MinNodes = 0
	}
	if HasFlag(q, "PartitionTimeLimit") {
		if out.DefaultTime == 0 {
			out.DefaultTime = out.MaxTime
		}
		out.MaxTime = 0
	}
	return &out
}

// qosOf returns the QOS whose limits apply to a job: that of its partition before
// its own, unless its own has the flag OverPartQOS. The first that has a limit of a
// kind overrides the other.
func (c *Checker) qosOf(u *Usage) []string {
	var out []string
	if p := c.partitionQOS[u.Partition]; p != "" {
		out = append(out, p)
	}
	switch {
	case u.QOS == "" || len(out) > 0 && out[0] == u.QOS:
	case HasFlag(c.qos[u.QOS], "OverPartQOS"):
		out = append([]string{u.QOS}, out...)
	default:
		out = append(out, u.QOS)
	}
	return out
}

// ancestors returns the account and all accounts above it. It ends where the
// parents form a cycle.
func (c *Checker) ancestors(account string) []string {
	var out []string
	for seen := map[string]bool{}; account != "" && !seen[account]; {
		seen[account] = true
		out = append(out, account)
		a := c.accounts[account]
		if a == nil {
			break
		}
		account = a.Spec.Parent
	}
	return out
}

// Check returns why a pending job cannot start as it is, or the indexes in Limits
// of the budgets that its start draws on.
func (c *Checker) Check(u *Usage) (reason string, budgets []int) {
	if !c.enforced {
		return "", nil
	}
	k := newCheck(c, u)
	for _, name := range c.qosOf(u) {
		if q := c.qos[name]; q != nil {
			if r := k.checkQOS(q); r != "" {
				return r, nil
			}
		}
	}
	if r := k.checkAssociation(); r != "" {
		return r, nil
	}
	return "", k.budgets
}
