package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	errReservation Refused = refusal.InvalidReservation
	errInUse       Refused = "Requested reservation is in use"
	errExists      Refused = "Duplicate reservation name"
)

// reservationAction is scontrol create, update and delete of reservations.
func (o *Operations) reservationAction(c *directory.Caller, verb string, set map[string]string) (entityActor, error) {
	if verb != status.OpDelete {
		if err := change.ReservationForm(set, o.Now(), verb == status.OpCreate); err != nil {
			return nil, err
		}
	}
	if o.denied(c, authz.Reservation, authz.Action(verb)) {
		return nil, errInvalidUser
	}
	switch verb {
	case status.OpCreate:
		return func(ctx context.Context, name string) (string, error) { return o.createReservation(ctx, c, name, set) }, nil
	case status.OpUpdate:
		return func(ctx context.Context, name string) (string, error) {
			return name, o.updateReservation(ctx, name, set)
		}, nil
	case status.OpDelete:
		return func(ctx context.Context, name string) (string, error) { return name, o.deleteReservation(ctx, name) }, nil
	}
	return nil, errNotSupported
}

func (o *Operations) createReservation(ctx context.Context, c *directory.Caller, name string, set map[string]string) (string, error) {
	r := &v1alpha1.Reservation{}
	r.Spec.By = c.Name
	if err := o.reserve(r, set, true); err != nil {
		return name, err
	}
	chosen := name == ""
	for try := 1; ; try++ {
		if chosen {
			name = o.reservationName(&r.Spec, try)
		}
		if len(validation.IsDNS1123Subdomain(v1alpha1.ReservationObject(name))) > 0 {
			return name, errReservation
		}
		r.ObjectMeta = newMeta(name)
		err := o.Cluster.Client.Create(ctx, r)
		switch {
		case apierrors.IsAlreadyExists(err) && chosen && try < 1000:
			continue
		case apierrors.IsAlreadyExists(err):
			return name, errExists
		case err != nil:
			return name, err
		}
		o.Cluster.Reservations.Apply(r)
		return name, nil
	}
}

// reservationName is the try-th name for a reservation without one.
func (o *Operations) reservationName(s *v1alpha1.ReservationSpec, try int) string {
	base := "resv"
	for _, of := range [][]string{s.Accounts, s.Users, s.Groups} {
		if len(of) > 0 {
			base = strings.TrimPrefix(of[0], "-")
			break
		}
	}
	return base + "_" + strconv.Itoa(try)
}

func (o *Operations) updateReservation(ctx context.Context, name string, set map[string]string) error {
	r := o.Directory.Reservation(name)
	if r == nil {
		return errReservation
	}
	if len(set) == 0 {
		return nil // as in Slurm
	}
	n := r.DeepCopy()
	if err := o.reserve(n, set, false); err != nil {
		return err
	}
	if err := o.Cluster.Client.Update(ctx, n); err != nil {
		switch {
		case apierrors.IsConflict(err):
			return errNotNow
		case apierrors.IsNotFound(err):
			return errReservation
		}
		return err
	}
	o.Cluster.Reservations.Apply(n)
	return nil
}

func (o *Operations) deleteReservation(ctx context.Context, name string) error {
	r := o.Directory.Reservation(name)
	if r == nil {
		return errReservation
	}
	for _, b := range o.Cluster.Jobs.List() {
		if reserve.Of(b) != r.Name {
			continue
		}
		switch b.Status.State {
		case "", v1alpha1.StatePending, v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
			return errInUse
		}
	}
	if err := o.Cluster.Client.Delete(ctx, r); err != nil {
		if apierrors.IsNotFound(err) {
			return errReservation
		}
		return err
	}
	o.Cluster.Reservations.Remove(r, o.Now())
	return nil
}

// reserve makes the settings in r and checks the whole.
func (o *Operations) reserve(r *v1alpha1.Reservation, set map[string]string, fresh bool) error {
	w := change.Pool{
		Now:      o.Now(),
		User:     func(name string) bool { return o.Directory.User(name) != nil },
		Licenses: func(name string) int32 { return o.Directory.Parameters().Licenses[name] },
		Account: func(name string) bool {
			a, known := o.Directory.Account(name)
			return a != nil || !known
		},
	}
	moved, err := change.Reservation(&r.Spec, set, &w, fresh)
	if err != nil {
		return err
	}
	return o.pool().Place(r, moved)
}

// pool is what the nodes of reservations are chosen from.
func (o *Operations) pool() *reserve.Pool {
	p := &reserve.Pool{Nodes: o.Pool.NodesView(), Reservations: o.Cluster.Reservations.List(), Jobs: o.Cluster.Jobs.List(),
		Known: func(name string) bool { return o.Directory.Partition(name) != nil }}
	if d := o.Directory.Default(); d != nil {
		p.Default = d.Name
	}
	return p
}

// reservationRow describes a reservation.
func (a *API) reservationRow(r *v1alpha1.Reservation, nodes map[string]status.Node) status.Reservation {
	s := &r.Spec
	from, to := change.Span(s)
	row := status.Reservation{
		Name: ReservationName(r), State: "INACTIVE", Start: from, End: to,
		Features: s.Features, Partition: s.Partition, Flags: s.Flags, PurgeComp: s.PurgeComp,
		Users: s.Users, Groups: s.Groups, Accounts: s.Accounts, MaxStartIn: s.MaxStartDelay,
	}
	if now := a.Now().Unix(); from <= now && now < to {
		row.State = "ACTIVE"
	}
	names, err := hostlist.Expand(s.Nodes)
	if err == nil {
		row.Nodes = names
	}
	cpus := int32(0)
	for _, n := range names {
		threads := max(nodes[n].Threads, 1)
		cores := nodes[n].CPUs / threads
		if len(s.Cores) > 0 {
			cores = int32(len(array.Parse(s.Cores[n])))
			row.Cores = append(row.Cores, status.NodeCores{Node: n, IDs: s.Cores[n]})
		}
		row.CPUs += cores
		cpus += cores * threads
	}
	if cpus > 0 {
		row.TRES = "cpu=" + strconv.Itoa(int(cpus))
	}
	row.Licenses = change.LicenseList(s.Licenses)
	return row
}

// ReservationName is the name that users gave r.
func ReservationName(r *v1alpha1.Reservation) string {
	if n := r.Annotations[wire.AnnotationName]; n != "" {
		return n
	}
	return r.Name
}

func newMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: v1alpha1.ReservationObject(name), Annotations: map[string]string{wire.AnnotationName: name}}
}

func (a *API) reservations(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	nodes := map[string]status.Node{}
	for _, n := range a.Pool.NodesView() {
		nodes[n.Name] = n
	}
	l := &status.ReservationList{Kind: "ReservationList", APIVersion: apiVersion(), Items: []status.Reservation{}}
	all := a.Directory.Refusal(c.Roles(), authz.Reservation, authz.Read) == ""
	for _, x := range a.Operations.Cluster.Reservations.List() {
		if all || usable(c, &x.Spec) {
			l.Items = append(l.Items, a.reservationRow(x, nodes))
		}
	}
	slices.SortFunc(l.Items, func(x, y status.Reservation) int { return strings.Compare(x.Name, y.Name) })
	a.list(w, r, l)
}

// usable reports whether the caller may submit to the reservation, which
// PrivateData=reservations does not hide then.
func usable(c *directory.Caller, s *v1alpha1.ReservationSpec) bool {
	if c.User == nil {
		return false
	}
	accounts := append([]string{c.User.Spec.DefaultAccount}, c.User.Spec.Accounts...)
	return slices.ContainsFunc(accounts, func(account string) bool { return reserve.MayUse(s, c.User, account) })
}

// licenses lists the cluster's licences: what running jobs hold of them, and
// what reservations keep now.
func (a *API) licenses(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	used, reserved := map[string]int32{}, map[string]int32{}
	for _, b := range a.Operations.Cluster.Jobs.List() {
		if b.Status.Allocation == nil || !live(b) {
			continue
		}
		for _, l := range b.Spec.Job.Licenses {
			used[l.Name] += l.Count
		}
	}
	for _, x := range a.Operations.Cluster.Reservations.List() {
		if from, to := change.Span(&x.Spec); from <= a.Now().Unix() && a.Now().Unix() < to {
			for name, n := range x.Spec.Licenses {
				reserved[name] += n
			}
		}
	}
	list := &status.LicenseList{Kind: "LicenseList", APIVersion: apiVersion(), Items: []status.License{}}
	all := a.Directory.Parameters().Licenses
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list.Items = append(list.Items, status.License{Name: name, Total: all[name], Used: used[name], Reserved: reserved[name]})
	}
	a.list(w, r, list)
}
