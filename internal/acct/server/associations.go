package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// associations serves GET associations. With PrivateData=accounts or users it
// leaves out those of others.
func (s *Server) associations(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	response.JSON(w, r, s.state(c))
}

func (s *Server) state(c *directory.Caller) *status.AcctState {
	out := &status.AcctState{
		Kind: "AssociationState", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion, Cluster: s.cluster(),
		Accounts: []status.AcctAccount{}, Users: []status.AcctUser{}, QOS: []status.AcctQOS{},
	}
	mine := s.ownAccounts(c)
	for _, a := range s.Cluster.Accounts.List() {
		if mine[a.Name] || s.mayAll(c, authz.Account, authz.Read) {
			out.Accounts = append(out.Accounts, account(a))
		}
	}
	coordinates := s.coordinates(c)
	for _, u := range s.Cluster.Users.List() {
		if s.may(c, u.Name, "", authz.UserObject, authz.Read) ||
			slices.ContainsFunc(u.Spec.Accounts, func(a string) bool { return coordinates[a] }) {
			out.Users = append(out.Users, user(u))
		}
	}
	all := slices.Clone(s.Cluster.QOS.List())
	slices.SortFunc(all, byAge)
	for _, q := range all {
		out.QOS = append(out.QOS, qos(q))
	}
	slices.SortFunc(out.Accounts, func(a, b status.AcctAccount) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Users, func(a, b status.AcctUser) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// byAge compares QOS by their age, which is the order of Slurm's lists. The QOS normal,
// which Slurm creates with its database, is the first.
func byAge(a, b *v1alpha1.QOS) int {
	switch {
	case a.Name == normalQOS:
		return -1
	case b.Name == normalQOS:
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// ownAccounts returns the accounts that the caller is in or coordinates.
func (s *Server) ownAccounts(c *directory.Caller) map[string]bool {
	out := map[string]bool{}
	if c.User == nil {
		return out
	}
	for a := range s.coordinates(c) {
		out[a] = true
	}
	for _, a := range append(slices.Clone(c.User.Spec.Accounts), c.User.Spec.DefaultAccount) {
		out[a] = true
	}
	return out
}

// convert copies between an object's spec and its form in the API, which have the
// same fields (a test compares them).
func convert(from, to any) {
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		panic(err) // both are structs of this project, which JSON can encode
	}
}

func account(a *v1alpha1.Account) status.AcctAccount {
	var out status.AcctAccount
	convert(&a.Spec, &out)
	out.Name, out.Version = a.Name, a.ResourceVersion
	return out
}

func user(u *v1alpha1.User) status.AcctUser {
	var out status.AcctUser
	convert(&u.Spec, &out)
	out.Name, out.Version = u.Name, u.ResourceVersion
	return out
}

func qos(q *v1alpha1.QOS) status.AcctQOS {
	var out status.AcctQOS
	convert(&q.Spec, &out)
	out.Name, out.Version = q.Name, q.ResourceVersion
	return out
}

// target is the object of a change, before and after it.
type target struct {
	old, now client.Object // old is nil for a new object, now for a deleted one
}

// setEditable sets the fields of spec that sacctmgr edits to those of u. The
// others, such as the user's id and quota, stay as they are.
func setEditable(spec *v1alpha1.UserSpec, u *status.AcctUser) {
	var edited v1alpha1.UserSpec
	convert(u, &edited)
	spec.AdminLevel, spec.DefaultAccount, spec.Accounts = edited.AdminLevel, edited.DefaultAccount, edited.Accounts
	spec.DefaultQOS, spec.Associations = edited.DefaultQOS, edited.Associations
	spec.WCKeys, spec.DefaultWCKey = edited.WCKeys, edited.DefaultWCKey
}

// target returns the object of a change. found is false if it does not exist in
// the version that the caller has read.
func (s *Server) target(c *status.AcctChange) (t target, found bool) {
	switch {
	case c.Account != nil:
		old, ok := s.Cluster.Accounts.Get(c.Account.Name)
		n := &v1alpha1.Account{}
		if ok {
			t.old, n = old, old.DeepCopy()
		}
		n.Name = c.Account.Name
		n.Spec = v1alpha1.AccountSpec{}
		convert(c.Account, &n.Spec)
		t.now, found = n, ok == (c.Account.Version != "") && (!ok || c.Account.Version == old.ResourceVersion)
	case c.User != nil:
		old, ok := s.Cluster.Users.Get(c.User.Name)
		if !ok {
			return t, false // sacctmgr creates no User objects
		}
		n := old.DeepCopy()
		setEditable(&n.Spec, c.User)
		t.old, t.now, found = old, n, c.User.Version == old.ResourceVersion
	case c.QOS != nil:
		old, ok := s.Cluster.QOS.Get(c.QOS.Name)
		n := &v1alpha1.QOS{}
		if ok {
			t.old, n = old, old.DeepCopy()
		}
		n.Name = c.QOS.Name
		n.Spec = v1alpha1.QOSSpec{}
		convert(c.QOS, &n.Spec)
		t.now, found = n, ok == (c.QOS.Version != "") && (!ok || c.QOS.Version == old.ResourceVersion)
	}
	if c.Delete {
		t.now = nil
	}
	return t, found
}

// mayChange reports whether the caller may make the change according to the table of
// rights, which limits the changes of coordinators and operators.
func (s *Server) mayChange(c *directory.Caller, change *status.AcctChange, t target) bool {
	roles := c.Roles()
	coordinates := s.coordinates(c)
	if len(coordinates) > 0 {
		roles = roles.And(authz.Coordinator)
	}
	object := authz.QOS
	switch {
	case change.Account != nil:
		object = authz.Account
	case change.User != nil:
		object = authz.UserObject
	}
	switch authz.May(roles, object, authz.Update) {
	case authz.Allow:
		return true
	case authz.Limited:
	default:
		return false
	}
	switch {
	case object == authz.Account:
		return s.mayCoordinateAccount(coordinates, change, t)
	case change.User.AdminLevel != levelOf(t.old) && authz.May(roles, authz.UserObject, authz.Level) != authz.Allow:
		return false
	case roles.Has(authz.Operator):
		return true
	}
	return !change.Delete && mayCoordinateUser(coordinates, t)
}

func levelOf(o client.Object) string {
	if u, ok := o.(*v1alpha1.User); ok {
		return u.Spec.AdminLevel
	}
	return ""
}

// mayCoordinateAccount reports whether the account is, and stays, below one that
// the caller coordinates.
func (s *Server) mayCoordinateAccount(coordinates map[string]bool, change *status.AcctChange, t target) bool {
	if !coordinates[change.Account.Parent] {
		return false
	}
	old, ok := t.old.(*v1alpha1.Account)
	return !ok || coordinates[old.Spec.Parent]
}

// mayCoordinateUser reports whether the change is one of a coordinator: only of
// associations with accounts that the caller coordinates.
func mayCoordinateUser(coordinates map[string]bool, t target) bool {
	old, ok := t.old.(*v1alpha1.User)
	now, ok2 := t.now.(*v1alpha1.User)
	if !ok || !ok2 {
		return false
	}
	others := func(u *v1alpha1.User) *v1alpha1.UserSpec {
		spec := u.Spec.DeepCopy()
		spec.DefaultAccount = ""
		spec.Associations = slices.DeleteFunc(spec.Associations, func(a v1alpha1.Association) bool {
			return coordinates[a.Account]
		})
		spec.Accounts = slices.DeleteFunc(spec.Accounts, func(a string) bool { return coordinates[a] })
		slices.Sort(spec.Accounts)
		return spec
	}
	return equality.Semantic.DeepEqual(others(old), others(now)) &&
		(old.Spec.DefaultAccount == now.Spec.DefaultAccount || coordinates[now.Spec.DefaultAccount])
}
