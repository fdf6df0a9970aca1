// Package directory answers who and what exists: which User a Kubernetes
// identity acts for, whose a namespace is, partitions, accounts, QOS and the
// cluster's parameters. It reads the process's stores only.
package directory

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// Levels of administration (User.spec.adminLevel).
const (
	LevelOperator      = "Operator"
	LevelAdministrator = "Administrator"
)

// Masters is the group that may do everything in a Kubernetes cluster.
const Masters = "system:masters"

// DefaultPartition is the name of the partition that is assumed when the
// cluster has none.
const DefaultPartition = "main"

// Directory is safe for concurrent use. Objects it returns are shared: nobody
// may change them.
type Directory struct {
	cluster *control.Cluster
	trusted map[string]bool

	limits cached[limits.Checker]
	index  cached[index]
	// coordinators are the accounts that each user coordinates.
	coordinators cached[map[string]map[string]bool]
}

type index struct {
	byIdentity  map[string]*v1alpha1.User
	byNamespace map[string]*v1alpha1.User
	byUID       map[int64]*v1alpha1.User // one of them, if several share the number
}

// New makes a directory over the stores of c, before these are fed. trusted
// are the identities of Berth's own processes.
func New(c *control.Cluster, trusted []string) *Directory {
	d := &Directory{cluster: c, trusted: map[string]bool{}}
	for _, name := range trusted {
		d.trusted[name] = true
	}
	d.index.build = func() *index { return buildIndex(c.Users.List()) }
	d.limits.build = d.buildLimits
	d.coordinators.build = func() *map[string]map[string]bool { return coordinators(c.Accounts.List()) }
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { d.index.invalidate(); d.limits.invalidate() })
	c.Accounts.Subscribe(func(_, _ *v1alpha1.Account) { d.limits.invalidate(); d.coordinators.invalidate() })
	c.QOS.Subscribe(func(_, _ *v1alpha1.QOS) { d.limits.invalidate() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { d.limits.invalidate() })
	return d
}

// Caller is who makes a request.
type Caller struct {
	Name string // as it is recorded: the User's name, else the identity
	// Identity and Groups are what the caller was resolved from.
	Identity string
	Groups   []string
	User     *v1alpha1.User
	// Admin may act for everybody; Operator may change and cancel every job.
	// An Admin is an Operator.
	Admin, Operator bool
	// Trusted is one of Berth's own processes.
	Trusted bool
}

// Resolve says who the authenticated identity is. It is never nil; a caller
// without User, Admin or Trusted has no rights.
func (d *Directory) Resolve(identity string, groups []string) *Caller {
	c := &Caller{Name: identity, Identity: identity, Groups: groups, User: d.index.get().byIdentity[identity], Trusted: d.trusted[identity]}
	c.Admin = slices.Contains(groups, Masters)
	if c.User != nil {
		c.Name = c.User.Name
		switch c.User.Spec.AdminLevel {
		case LevelAdministrator:
			c.Admin = true
		case LevelOperator:
			c.Operator = true
		}
	}
	c.Operator = c.Operator || c.Admin || c.Trusted
	return c
}

// Owner is the User whose namespace it is, or nil.
func (d *Directory) Owner(namespace string) *v1alpha1.User {
	return d.index.get().byNamespace[namespace]
}

// User by name, or nil.
func (d *Directory) User(name string) *v1alpha1.User {
	u, _ := d.cluster.Users.Get(name)
	return u
}

// UserByUID is a User with that number, or nil.
func (d *Directory) UserByUID(uid int64) *v1alpha1.User { return d.index.get().byUID[uid] }

// buildIndex makes the index. An identity or a namespace that two Users claim
// belongs to neither: whoever wrote the second must not become the first.
func buildIndex(users []*v1alpha1.User) *index {
	x := &index{byIdentity: map[string]*v1alpha1.User{}, byNamespace: map[string]*v1alpha1.User{}, byUID: map[int64]*v1alpha1.User{}}
	for _, u := range users {
		claim(x.byNamespace, u.Spec.Namespace, u)
		x.byUID[u.Spec.UID] = u
	}
	for _, u := range users {
		identities := u.Spec.Identities
		if len(identities) == 0 {
			identities = []string{u.Name}
		}
		for _, identity := range identities {
			if !strings.HasPrefix(identity, "system:") {
				claim(x.byIdentity, identity, u)
			}
		}
		if x.byNamespace[u.Spec.Namespace] == u {
			claim(x.byIdentity, "system:serviceaccount:"+u.Spec.Namespace+":"+v1alpha1.ServiceAccountName, u)
		}
	}
	return x
}

func claim(m map[string]*v1alpha1.User, key string, u *v1alpha1.User) {
	if key == "" {
		return
	}
	if other, ok := m[key]; ok && other != u {
		m[key] = nil
		return
	}
	m[key] = u
}

// Limits returns the limits of accounts and QOS, to check submissions against.
// They do not count running jobs.
func (d *Directory) Limits() *limits.Checker { return d.limits.get() }

func (d *Directory) buildLimits() *limits.Checker {
	return limits.New(&limits.Input{Accounts: d.cluster.Accounts.List(), Users: d.cluster.Users.List(),
		QOS: d.cluster.QOS.List(), Partitions: d.cluster.Partitions.List(),
		Enforce: d.Parameters().AccountingStorageEnforce})
}

// Parameters of the cluster; defaults where there are none.
func (d *Directory) Parameters() v1alpha1.ClusterSpec { return d.cluster.Parameters() }

// Partitions lists all by name; the assumed one if there is none.
func (d *Directory) Partitions() []*v1alpha1.Partition {
	all := d.cluster.Partitions.List()
	if len(all) == 0 {
		return []*v1alpha1.Partition{assumed()}
	}
	list := make([]*v1alpha1.Partition, len(all))
	for i, p := range all {
		list[i] = p.Inherit(all)
	}
	slices.SortFunc(list, func(a, b *v1alpha1.Partition) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Partition by name, or nil.
func (d *Directory) Partition(name string) *v1alpha1.Partition {
	if p, ok := d.cluster.Partitions.Get(name); ok {
		return p.Inherit(d.cluster.Partitions.List())
	}
	if name == DefaultPartition && d.cluster.Partitions.Len() == 0 {
		return assumed()
	}
	return nil
}

// Default is the partition of jobs that name none; a single one is it anyway.
// nil: there is none.
func (d *Directory) Default() *v1alpha1.Partition {
	list := d.Partitions()
	for _, p := range list {
		if p.Spec.Default {
			return p
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return nil
}

func assumed() *v1alpha1.Partition {
	p := &v1alpha1.Partition{}
	p.Name = DefaultPartition
	p.Spec.Default = true
	return p
}

// Account by name, or nil; known is false when the cluster keeps no accounts.
func (d *Directory) Account(name string) (a *v1alpha1.Account, known bool) {
	a, _ = d.cluster.Accounts.Get(name)
	return a, d.cluster.Accounts.Len() > 0
}

// QOS by name, or nil; known is false when the cluster keeps no QOS.
func (d *Directory) QOS(name string) (q *v1alpha1.QOS, known bool) {
	q, _ = d.cluster.QOS.Get(name)
	return q, d.cluster.QOS.Len() > 0
}

// IsArray tells whether the job is an array, of which tasks may have begun.
func (d *Directory) IsArray(id int64) bool {
	b, ok := d.cluster.Job(id)
	return ok && array.ID(b) == id
}

// Reservation by the name that users know, or nil.
func (d *Directory) Reservation(name string) *v1alpha1.Reservation {
	r, _ := d.cluster.Reservations.Get(v1alpha1.ReservationObject(name))
	return r
}

// AccountExists reports whether the account exists, or the cluster keeps none.
func (d *Directory) AccountExists(name string) bool {
	a, known := d.Account(name)
	return a != nil || !known
}

// QOSExists reports whether the QOS exists, or the cluster keeps none.
func (d *Directory) QOSExists(name string) bool {
	q, known := d.QOS(name)
	return q != nil || !known
}

// Requeueable reports whether the job may return to the queue once it has started:
// what it asked for, else the cluster's JobRequeue, which is on by default.
func (d *Directory) Requeueable(j *job.Job) bool {
	if requeue := j.Batch.Requeue; requeue != nil {
		return *requeue
	}
	requeue := d.Parameters().JobRequeue
	return requeue == nil || *requeue
}
