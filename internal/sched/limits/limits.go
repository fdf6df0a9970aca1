// Package limits applies the limits of accounts, associations and QOS to
// pending jobs, under Slurm's reasons (sacctmgr(1); squeue(1), JOB REASON
// CODES). It is pure.
//
// A limit of the QOS counts instead of the same limit of the association. Group
// limits hold at every account above; limits of one job or one user are those
// of the nearest association or account that has one.
package limits

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/status"
)

// Use is what a job holds, or wants at least.
type Use struct {
	Account, User, QOS, Partition string
	CPUs, Nodes                   int64
	Memory                        int64 // MiB
	GRES                          map[string]int64
	Licenses                      map[string]int64
	// Billing is what it is billed, where Billed; else its CPUs count.
	Billing int64
	Billed  bool
	// Minutes of a pending job's time limit, or those that a running job has
	// left; 0: no limit.
	Minutes int64
}

// of is the amount of a TRES by Slurm's name; ok is false for one that is not
// counted.
func (u *Use) of(tres string) (int64, bool) {
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

// Input is everything the limits depend on. The objects are only read.
type Input struct {
	Accounts   []*v1alpha1.Account
	Users      []*v1alpha1.User
	QOS        []*v1alpha1.QOS
	Partitions []*v1alpha1.Partition
	Running    []Use
	// Minutes of each TRES that an association has used, decayed.
	Minutes map[status.AssociationKey]map[string]float64
	// MinutesOfQOS is the same for each QOS.
	MinutesOfQOS map[string]map[string]float64
	// Enforce is the Cluster's accountingStorageEnforce.
	Enforce []string
}

// Checker judges pending jobs. It is for one plan: not safe for concurrent use.
type Checker struct {
	accounts map[string]*v1alpha1.Account
	users    map[string]*v1alpha1.User
	qos      map[string]*v1alpha1.QOS
	parts    map[string]string // partition -> its QOS
	in       *Input

	// Limits are what jobs may together still start.
	Limits  []backfill.Limit
	index   map[budget]int
	remains []func() int64  // of each of Limits: what is left now
	within  map[scope][]int // places in Limits

	any     bool // some limit may apply
	safe    bool // Enforcement.Safe
	running map[scope]*Use
	jobs    map[scope]int64
	left    map[scope]*Use // of running jobs: amount times minutes left
	used    map[scope]map[string]float64
}

// scope is whose jobs a limit counts; empty fields stand for all.
type scope struct{ account, user, qos string }

// budget is one entry of Limits.
type budget struct {
	scope
	reason string
	gres   string
}

// New makes a Checker.
func New(in *Input) *Checker {
	c := &Checker{
		in: in, accounts: map[string]*v1alpha1.Account{}, users: map[string]*v1alpha1.User{}, qos: map[string]*v1alpha1.QOS{},
		parts: map[string]string{}, index: map[budget]int{}, within: map[scope][]int{},
		running: map[scope]*Use{}, jobs: map[scope]int64{}, left: map[scope]*Use{}, used: map[scope]map[string]float64{},
	}
	for _, a := range in.Accounts {
		c.accounts[a.Name] = a
		c.any = true
	}
	for _, u := range in.Users {
		c.users[u.Name] = u
		c.any = c.any || len(u.Spec.Associations) > 0
	}
	for _, q := range in.QOS {
		c.qos[q.Name] = q
		c.any = true
	}
	for _, p := range in.Partitions {
		c.parts[p.Name] = p.Spec.QOS
	}
	enforced := Enforced(in.Enforce)
	if c.safe = enforced.Safe; !enforced.Limits {
		c.any = false
	}
	if c.any {
		c.count()
	}
	return c
}

// count adds up what runs, and what was used, for every scope that any limit
// may have.
func (c *Checker) count() {
	for i := range c.in.Running {
		c.hold(&c.in.Running[i], 1)
	}
	for name, tres := range c.in.MinutesOfQOS {
		c.used[scope{qos: name}] = tres
	}
	for k, tres := range c.in.Minutes {
		for _, s := range c.scopes(&Use{Account: k.Account, User: k.User}) {
			if c.used[s] == nil {
				c.used[s] = map[string]float64{}
			}
			for name, n := range tres {
				c.used[s][name] += n
			}
		}
	}
}

// hold counts a running job in, or out with sign -1, and returns where.
func (c *Checker) hold(u *Use, sign int64) []scope {
	all := c.scopes(u)
	for _, s := range all {
		c.jobs[s] += sign
		if c.running[s] == nil {
			c.running[s], c.left[s] = &Use{}, &Use{}
		}
		c.running[s].add(u, sign)
		c.left[s].add(u, sign*u.Minutes)
	}
	return all
}

// Hold brings Limits up to date after a job began to hold u, or with sign -1
// ended.
func (c *Checker) Hold(u *Use, sign int64) {
	if !c.any {
		return
	}
	for _, s := range c.hold(u, sign) {
		for _, i := range c.within[s] {
			c.Limits[i].Left = c.remains[i]()
		}
	}
}

// Budgeted tells whether what Pending says of a job stays true when others start
// and end: Limits are all that changes then.
func (c *Checker) Budgeted() bool {
	ok := func(l *v1alpha1.Limits) bool {
		for _, group := range []map[string]int64{l.GrpTRES, l.MaxTRESUser, l.MaxTRESPerAccount} {
			for tres := range group {
				if _, countable := quantity(tres); !countable {
					return false
				}
			}
		}
		return len(l.GrpTRESRunMins) == 0
	}
	for _, a := range c.accounts {
		if !ok(&a.Spec.Limits) {
			return false
		}
	}
	for _, q := range c.qos {
		if !ok(&q.Spec.Limits) {
			return false
		}
	}
	for _, u := range c.users {
		for i := range u.Spec.Associations {
			if !ok(&u.Spec.Associations[i].Limits) {
				return false
			}
		}
	}
	return true
}

func (u *Use) add(o *Use, times int64) {
	u.CPUs += o.CPUs * times
	u.Nodes += o.Nodes * times
	u.Memory += o.Memory * times
	addTo(&u.GRES, o.GRES, times)
	addTo(&u.Licenses, o.Licenses, times)
}

func addTo(to *map[string]int64, more map[string]int64, times int64) {
	for k, n := range more {
		if *to == nil {
			*to = map[string]int64{}
		}
		(*to)[k] += n * times
	}
}

// scopes are all that a job counts in.
func (c *Checker) scopes(u *Use) []scope {
	out := []scope{{account: u.Account, user: u.User}}
	for _, name := range c.chain(u.Account) {
		out = append(out, scope{account: name})
	}
	for _, q := range c.qosOf(u) {
		out = append(out, scope{qos: q}, scope{qos: q, user: u.User}, scope{qos: q, account: u.Account})
	}
	return out
}

// Flagged tells whether the QOS has the flag; nil has none.
func Flagged(q *v1alpha1.QOS, flag string) bool {
	return q != nil && slices.ContainsFunc(q.Spec.Flags, func(f string) bool { return strings.EqualFold(f, flag) })
}

// Overridden is what of a partition's limits holds for jobs in the QOS, which
// may leave some out (sacctmgr(1), PartitionMaxNodes and the like). p itself
// where all do.
func Overridden(p *v1alpha1.PartitionSpec, q *v1alpha1.QOS) *v1alpha1.PartitionSpec {
	if q == nil || len(q.Spec.Flags) == 0 {
		return p
	}
	own := *p
	if Flagged(q, "PartitionMaxNodes") {
		own.MaxNodes = 0
	}
	if Flagged(q, "PartitionMinNodes") {
		own.MinNodes = 0
	}
	if Flagged(q, "PartitionTimeLimit") {
		if own.DefaultTime == 0 {
			own.DefaultTime = own.MaxTime
		}
		own.MaxTime = 0
	}
	return &own
}

// qosOf are the QOS whose limits hold for a job, its partition's before its own
// unless that has OverPartQOS; the first that has a limit of a kind decides.
func (c *Checker) qosOf(u *Use) []string {
	var out []string
	if p := c.parts[u.Partition]; p != "" {
		out = append(out, p)
	}
	switch {
	case u.QOS == "" || len(out) > 0 && out[0] == u.QOS:
	case Flagged(c.qos[u.QOS], "OverPartQOS"):
		out = append([]string{u.QOS}, out...)
	default:
		out = append(out, u.QOS)
	}
	return out
}

// chain is the account and all above it. A loop is walked once.
func (c *Checker) chain(account string) []string {
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

// Pending judges a job that waits: a reason that it cannot start as it is, or
// the places in Limits that its start draws on.
func (c *Checker) Pending(u *Use) (reason string, draws []int) {
	if !c.any {
		return "", nil
	}
	j := judging{Checker: c, u: u, seen: map[string]bool{}}
	for _, name := range c.qosOf(u) {
		if q := c.qos[name]; q != nil {
			if r := j.quality(q); r != "" {
				return r, nil
			}
		}
	}
	if r := j.association(); r != "" {
		return r, nil
	}
	return "", j.draws
}
