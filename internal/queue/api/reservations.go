package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// reservations serves GET reservations.
func (a *API) reservations(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	nodes := map[string]status.Node{}
	for _, n := range a.Pool.NodesView() {
		nodes[n.Name] = n
	}
	l := &status.ReservationList{Kind: "ReservationList", APIVersion: apiVersion, Items: []status.Reservation{}}
	seesAll := a.Directory.Refusal(c.Roles(), authz.Reservation, authz.Read) == ""
	for _, x := range a.Operations.Cluster.Reservations.List() {
		if seesAll || maySubmitTo(c, &x.Spec) {
			l.Items = append(l.Items, a.reservationRow(x, nodes))
		}
	}
	slices.SortFunc(l.Items, func(x, y status.Reservation) int { return strings.Compare(x.Name, y.Name) })
	response.JSON(w, r, l)
}

// maySubmitTo reports whether the caller may submit jobs to the reservation, which
// it then sees even with PrivateData=reservations.
func maySubmitTo(c *directory.Caller, s *v1alpha1.ReservationSpec) bool {
	if c.User == nil {
		return false
	}
	accounts := append([]string{c.User.Spec.DefaultAccount}, c.User.Spec.Accounts...)
	return slices.ContainsFunc(accounts, func(account string) bool { return reserve.MayUse(s, c.User, account) })
}

// reservationRow describes a reservation; nodes are the cluster's by name.
func (a *API) reservationRow(r *v1alpha1.Reservation, nodes map[string]status.Node) status.Reservation {
	s := &r.Spec
	from, to := change.Span(s)
	row := status.Reservation{
		Name: reservationName(r), State: "INACTIVE", Start: from, End: to,
		Features: s.Features, Partition: s.Partition, Flags: s.Flags, PurgeComp: s.PurgeComp,
		Users: s.Users, Groups: s.Groups, Accounts: s.Accounts, MaxStartIn: s.MaxStartDelay,
		Licenses: change.FormatLicenses(s.Licenses),
	}
	if isActive(s, a.Now().Unix()) {
		row.State = "ACTIVE"
	}
	names, err := hostlist.ExpandLenient(s.Nodes)
	if err == nil {
		row.Nodes = names
	}
	cpus := int32(0)
	for _, name := range names {
		threads := max(nodes[name].Threads, 1)
		cores := nodes[name].CPUs / threads
		if len(s.Cores) > 0 {
			cores = int32(len(array.Parse(s.Cores[name])))
			row.Cores = append(row.Cores, status.NodeCores{Node: name, IDs: s.Cores[name]})
		}
		row.CPUs += cores
		cpus += cores * threads
	}
	if cpus > 0 {
		row.TRES = "cpu=" + strconv.Itoa(int(cpus))
	}
	return row
}

// reservationName returns the name that users gave the reservation.
func reservationName(r *v1alpha1.Reservation) string {
	if name := r.Annotations[wire.AnnotationName]; name != "" {
		return name
	}
	return r.Name
}

// isActive reports whether the reservation has started and not ended.
func isActive(s *v1alpha1.ReservationSpec, now int64) bool {
	from, to := change.Span(s)
	return from <= now && now < to
}

// licenses serves GET licenses: the cluster's licenses, those that jobs use, and
// those that active reservations hold.
func (a *API) licenses(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	used, reserved := map[string]int32{}, map[string]int32{}
	for _, b := range a.Operations.Cluster.Jobs.List() {
		if b.Status.Allocation == nil || !change.Live(b) {
			continue
		}
		for _, l := range b.Spec.Job.Licenses {
			used[l.Name] += l.Count
		}
	}
	for _, x := range a.Operations.Cluster.Reservations.List() {
		if isActive(&x.Spec, a.Now().Unix()) {
			for name, n := range x.Spec.Licenses {
				reserved[name] += n
			}
		}
	}
	list := &status.LicenseList{Kind: "LicenseList", APIVersion: apiVersion, Items: []status.License{}}
	total := a.Directory.Parameters().Licenses
	for _, name := range slices.Sorted(maps.Keys(total)) {
		list.Items = append(
			list.Items, status.License{Name: name, Total: total[name], Used: used[name], Reserved: reserved[name]},
		)
	}
	response.JSON(w, r, list)
}
