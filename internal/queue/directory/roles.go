package directory

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
)

// isController reports whether the identity is one of Kubernetes' own controllers
// (garbage collection, namespace deletion).
func isController(identity string) bool {
	return strings.HasPrefix(identity, "system:serviceaccount:kube-system:") ||
		identity == "system:kube-controller-manager" || identity == "system:apiserver"
}

// Roles returns the caller's roles towards objects that belong to no user.
func (c *Caller) Roles() authz.Roles {
	s := authz.Of(authz.Anyone)
	for _, x := range []struct {
		is   bool
		role authz.Role
	}{
		{c.User != nil, authz.User}, {c.Operator, authz.Operator}, {c.Admin, authz.Administrator},
		{c.Trusted, authz.Process}, {isController(c.Identity), authz.Controller},
	} {
		if x.is {
			s = s.And(x.role)
		}
	}
	return s
}

// RolesOn returns the caller's roles towards an object that belongs to a user and is
// charged to an account.
func (d *Directory) RolesOn(c *Caller, owner, account string) authz.Roles {
	s := c.Roles()
	switch {
	case c.User == nil:
	case c.User.Name == owner:
		s = s.And(authz.Owner)
	case account != "" && d.Coordinates(c.User.Name)[account]:
		s = s.And(authz.Coordinator)
	}
	return s
}

// RolesOnJob returns the caller's roles towards a job.
func (d *Directory) RolesOnJob(c *Caller, b *v1alpha1.BatchJob) authz.Roles {
	return d.RolesOn(c, b.Spec.User, b.Spec.Job.Account)
}

// Refusal returns Slurm's message for callers with these roles who may not do the
// action to the object, or "" if they may. A limited grant counts as one: the
// function that calls this one checks the bounds.
func (d *Directory) Refusal(s authz.Roles, o authz.Object, a authz.Action) string {
	r, ok := authz.Find(o, a)
	if !ok {
		return authz.Denied
	}
	grant := r.Grant(s)
	switch {
	case grant == authz.Deny,
		grant == authz.Public && d.Private(r.Private),
		grant == authz.Optional && !d.hasParameter(r.Option):
		return r.Refusal
	}
	return ""
}

// Private reports whether the cluster hides that kind of data of other users
// (slurm.conf(5), PrivateData).
func (d *Directory) Private(kind string) bool {
	return slices.ContainsFunc(d.Parameters().PrivateData, func(s string) bool {
		return strings.EqualFold(s, kind) || strings.EqualFold(s, "all")
	})
}

// hasParameter reports whether a list in slurm.conf contains a word: "NAME=WORD".
func (d *Directory) hasParameter(text string) bool {
	name, word, _ := strings.Cut(text, "=")
	return slices.Contains(strings.Split(d.Parameters().Parameters[name], ","), word)
}

// Coordinates returns the accounts that the user coordinates, with those below them.
// The map is shared: nobody may change it.
func (d *Directory) Coordinates(user string) map[string]bool {
	return (*d.coordinators.get())[user]
}

// coordinators returns the accounts that each user coordinates.
func coordinators(accounts []*v1alpha1.Account) *map[string]map[string]bool {
	below := map[string][]string{}
	for _, a := range accounts {
		below[a.Spec.Parent] = append(below[a.Spec.Parent], a.Name)
	}
	out := map[string]map[string]bool{}
	for _, a := range accounts {
		for _, user := range a.Spec.Coordinators {
			if out[user] == nil {
				out[user] = map[string]bool{}
			}
			for list := []string{a.Name}; len(list) > 0; list = list[1:] {
				if !out[user][list[0]] {
					out[user][list[0]] = true
					list = append(list, below[list[0]]...)
				}
			}
		}
	}
	return &out
}
