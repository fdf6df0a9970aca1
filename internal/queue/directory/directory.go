// Package directory resolves names and identities: the User that a Kubernetes
// identity stands for, the owner of a namespace, a caller's roles, partitions,
// accounts, QOS, reservations and the cluster's parameters. It reads only the
// stores of this process.
package directory

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Masters is the group whose members may do everything in a Kubernetes cluster.
const Masters = "system:masters"

// Directory is safe for concurrent use. The objects that it returns are shared:
// nobody may change them.
type Directory struct {
	cluster *control.Cluster
	trusted map[string]bool

	limits cached[limits.Checker]
	index  cached[index]
	// coordinators are the accounts that each user coordinates.
	coordinators cached[map[string]map[string]bool]
}

// index finds Users. A nil User stands for an identity or namespace that several
// Users claim.
type index struct {
	byIdentity  map[string]*v1alpha1.User
	byNamespace map[string]*v1alpha1.User
	byUID       map[int64]*v1alpha1.User // any of those that share the uid
}

// New returns a directory of the stores of c. It must be called before the stores
// are filled. trusted are the identities of Berth's own processes.
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
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { d.limits.invalidate() })
	return d
}

// Caller is the identity of a request.
type Caller struct {
	Name string // for records: the User's name, else the identity
	// Identity and Groups are what the caller was resolved from.
	Identity string
	Groups   []string
	User     *v1alpha1.User // nil: the identity is no User's, or that of a disabled one
	// Admin may act for every user; Operator may change and cancel every job. An
	// Admin is an Operator.
	Admin, Operator bool
	// Trusted: the caller is one of Berth's own processes.
	Trusted bool
}

// Resolve returns the caller with the authenticated identity, never nil. A caller
// without User, Admin or Trusted has no rights. A disabled User has none, in its jobs too.
func (d *Directory) Resolve(identity string, groups []string) *Caller {
	c := &Caller{
		Name: identity, Identity: identity, Groups: groups,
		User:    d.index.get().byIdentity[identity],
		Admin:   slices.Contains(groups, Masters),
		Trusted: d.trusted[identity],
	}
	if c.User != nil && c.User.Spec.Disabled {
		c.Name, c.User = c.User.Name, nil
	}
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

// Owner returns the User whose namespace it is, or nil.
func (d *Directory) Owner(namespace string) *v1alpha1.User {
	return d.index.get().byNamespace[namespace]
}

// User returns the User with the name, or nil.
func (d *Directory) User(name string) *v1alpha1.User {
	u, _ := d.cluster.Users.Get(name)
	return u
}

// UserByUID returns a User with the uid, or nil.
func (d *Directory) UserByUID(uid int64) *v1alpha1.User { return d.index.get().byUID[uid] }

// buildIndex returns the index of users. An identity or a namespace that two Users
// claim belongs to neither: the author of the second must not become the first.
func buildIndex(users []*v1alpha1.User) *index {
	x := &index{
		byIdentity:  map[string]*v1alpha1.User{},
		byNamespace: map[string]*v1alpha1.User{},
		byUID:       map[int64]*v1alpha1.User{},
	}
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
		if x.byNamespace[u.Spec.Namespace] == u { // processes in the user's jobs
			claim(x.byIdentity, "system:serviceaccount:"+u.Spec.Namespace+":"+v1alpha1.ServiceAccountName, u)
		}
	}
	return x
}

// claim gives the key to u, or to nobody if another User has it.
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

// Limits returns the limits of accounts and QOS that submissions are checked
// against. They do not count running jobs.
func (d *Directory) Limits() *limits.Checker { return d.limits.get() }

func (d *Directory) buildLimits() *limits.Checker {
	return limits.New(&limits.Input{
		Accounts: d.cluster.Accounts.List(), Users: d.cluster.Users.List(),
		QOS: d.cluster.QOS.List(), Partitions: d.cluster.Partitions.List(),
		Enforce: d.Parameters().AccountingStorageEnforce,
	})
}

// Parameters returns the parameters of the cluster; those that are not set are zero.
func (d *Directory) Parameters() v1alpha1.ClusterSpec { return d.cluster.Parameters() }

// Partitions returns all partitions by name, or the default one if there are no
// Partition objects.
func (d *Directory) Partitions() []*v1alpha1.Partition {
	all := d.cluster.Partitions.List()
	if len(all) == 0 {
		return []*v1alpha1.Partition{defaultPartition()}
	}
	list := make([]*v1alpha1.Partition, len(all))
	for i, p := range all {
		list[i] = p.Inherit(all)
	}
	slices.SortFunc(list, func(a, b *v1alpha1.Partition) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Partition returns the partition with the name, or nil.
func (d *Directory) Partition(name string) *v1alpha1.Partition {
	if p, ok := d.cluster.Partitions.Get(name); ok {
		return p.Inherit(d.cluster.Partitions.List())
	}
	if name == v1alpha1.DefaultPartition && d.cluster.Partitions.Len() == 0 {
		return defaultPartition()
	}
	return nil
}

// Default returns the partition of jobs that name none: the one marked as default,
// or the only one. It returns nil if there is neither.
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

// defaultPartition returns the partition of a cluster without Partition objects.
func defaultPartition() *v1alpha1.Partition {
	p := &v1alpha1.Partition{}
	p.Name = v1alpha1.DefaultPartition
	p.Spec.Default = true
	return p
}

// Account returns the account with the name, in capitals or not as in Slurm, or nil. known
// is false if the cluster has no Account objects.
func (d *Directory) Account(name string) (a *v1alpha1.Account, known bool) {
	return named(d.cluster.Accounts, name), d.cluster.Accounts.Len() > 0
}

// QOS returns the QOS with the name, in capitals or not as in Slurm, or nil. known is false
// if the cluster has no QOS objects.
func (d *Directory) QOS(name string) (q *v1alpha1.QOS, known bool) {
	return named(d.cluster.QOS, name), d.cluster.QOS.Len() > 0
}

// named returns the object with the name, else one whose name differs in case only, else nil.
func named[T interface {
	client.Object
	comparable
}](store *control.Store[T], name string) (found T) {
	if o, ok := store.Get(name); ok || name == "" {
		return o
	}
	var none T
	for _, o := range store.List() {
		// The least of several, so that the result is always the same.
		if strings.EqualFold(o.GetName(), name) && (found == none || o.GetName() < found.GetName()) {
			found = o
		}
	}
	return found
}

// IsArray reports whether the job is an array, whose tasks may have started.
func (d *Directory) IsArray(id int64) bool {
	b, ok := d.cluster.Job(id)
	return ok && array.ID(b) == id
}

// Reservation returns the reservation with the name that users gave it, or nil.
func (d *Directory) Reservation(name string) *v1alpha1.Reservation {
	r, _ := d.cluster.Reservations.Get(v1alpha1.ReservationObject(name))
	return r
}

// HasAssociation reports whether the user has an association with the account.
func HasAssociation(user *v1alpha1.User, account string) bool {
	if account == "" {
		return false
	}
	return account == user.Spec.DefaultAccount || slices.Contains(user.Spec.Accounts, account) ||
		slices.ContainsFunc(user.Spec.Associations, func(x v1alpha1.Association) bool { return x.Account == account })
}

// AccountName returns the name of the account as it is stored. ok is false if there is no
// such account, but the cluster has others.
func (d *Directory) AccountName(name string) (stored string, ok bool) {
	a, known := d.Account(name)
	if a != nil {
		return a.Name, true
	}
	return name, !known
}

// QOSName returns the name of the QOS as it is stored. ok is false if there is no such QOS,
// but the cluster has others.
func (d *Directory) QOSName(name string) (stored string, ok bool) {
	q, known := d.QOS(name)
	if q != nil {
		return q.Name, true
	}
	return name, !known
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
