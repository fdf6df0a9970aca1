package directory

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
)

// controller reports whether the identity is a controller of Kubernetes itself
// (garbage collection, namespace deletion).
func controller(identity string) bool {
	return strings.HasPrefix(identity, "system:serviceaccount:kube-system:") || identity == "system:kube-controller-manager" || identity == "system:apiserver"
}

// Roles are the caller's roles towards what is nobody's.
func (c *Caller) Roles() authz.Roles {
	s := authz.Of(authz.Anyone)
	for _, x := range []struct {
		is   bool
		role authz.Role
	}{
		{c.User != nil, authz.User}, {c.Operator, authz.Operator}, {c.Admin, authz.Administrator},
		{c.Trusted, authz.Process}, {controller(c.Identity), authz.Controller},
	} {
		if x.is {
			s = s.And(x.role)
		}
	}
	return s
}

// RolesOn are the caller's roles towards something of a user that is charged to
// an account.
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

// RolesOnJob are the caller's roles towards a job.
func (d *Directory) RolesOnJob(c *Caller, b *v1alpha1.BatchJob) authz.Roles {
	return d.RolesOn(c, b.Spec.User, b.Spec.Job.Account)
}

// Refusal returns why callers of these roles may not do something, in Slurm's
// words; "": they may, perhaps within bounds that the caller of this function
// knows.
func (d *Directory) Refusal(s authz.Roles, o authz.Object, a authz.Action) string {
	r, ok := authz.Find(o, a)
	if !ok {
		return authz.Denied
	}
	switch g := r.Grant(s); {
	case g == authz.Deny, g == authz.Public && d.Private(r.Private), g == authz.Optional && !d.option(r.Option):
		return r.Refusal
	}
	return ""
}

// Private reports whether the cluster keeps that kind of thing from ordinary
// users (slurm.conf(5), PrivateData).
func (d *Directory) Private(kind string) bool {
	return slices.ContainsFunc(d.Parameters().PrivateData, func(s string) bool {
		return strings.EqualFold(s, kind) || strings.EqualFold(s, "all")
	})
}

// option reports whether a parameter of slurm.conf has the word: "NAME=WORD".
func (d *Directory) option(text string) bool {
	name, word, _ := strings.Cut(text, "=")
	return slices.Contains(strings.Split(d.Parameters().Parameters[name], ","), word)
}

// Coordinates are the accounts that the user coordinates, with those below. The
// map is shared: nobody may change it.
func (d *Directory) Coordinates(user string) map[string]bool {
	return (*d.coordinators.get())[user]
}

// coordinators are the accounts of each user who coordinates any.
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
