// Package authz says who may do what in a cluster, as data: one table of
// actions and one of a job's fields. Admission, the queue API, its operations
// and accounting all decide by them, and docs/authorization.md is written from
// them, so that no door is wider than another.
//
// The package knows no Kubernetes type and reads nothing. Roles come from
// directory.Directory.
package authz

import "slices"

// Role is what a caller is to the object of a request.
type Role uint8

// The roles. One caller has several: an operator may own the job as well.
const (
	// Anyone is whoever the API server has authenticated.
	Anyone Role = iota
	// User is a user of the cluster, here without any tie to the object.
	User
	// Owner is the user whose object it is; a process in one of the user's jobs,
	// which has a token of its own, is the same.
	Owner
	// Coordinator is a user who coordinates the account of the object.
	Coordinator
	Operator
	// Administrator is a User with that level, or a member of system:masters.
	Administrator
	// Controller is one of Kubernetes' own controllers.
	Controller
	// Process is one of Berth's own processes.
	Process
	roles // their number
)

// names are the roles as documents call them.
var names = [roles]string{"anyone authenticated", "another user", "owner", "coordinator", "operator", "administrator", "Kubernetes' controllers", "Berth's processes"}

func (r Role) String() string { return names[r] }

// Roles is a set of roles. The zero value is nobody: a request that the API
// server has not authenticated.
type Roles uint16

// Of is the set of the given roles.
func Of(list ...Role) Roles {
	var s Roles
	for _, r := range list {
		s |= 1 << r
	}
	return s
}

// Has reports whether r is in the set.
func (s Roles) Has(r Role) bool { return s&(1<<r) != 0 }

// And is the set with r.
func (s Roles) And(r Role) Roles { return s | 1<<r }

// Grant is how far an action is allowed.
type Grant uint8

// The grants, each including those before it.
const (
	Deny Grant = iota
	// Public is allowed unless the cluster's PrivateData names the rule's kind.
	Public
	// Optional is allowed where the cluster's parameters say so (Rule.Option).
	Optional
	// Limited is allowed within the bounds that Rule.Note or Field.Bound names.
	Limited
	Allow
)

// Object is a kind of thing that requests are about.
type Object string

// Action is what a request does to an Object. Those of jobs are the verbs of
// the queue API's operations (status.Op...), and others beside them.
type Action string

// Rule is one row of the table of actions.
type Rule struct {
	Object Object
	Action Action
	// Roles that may, each with its grant. Whoever has none of them may not.
	// Administrators and Berth's processes are named like anybody else.
	Roles map[Role]Grant
	// Private is PrivateData's word for what the grant Public depends on.
	Private string
	// Option is the parameter that the grant Optional depends on.
	Option string
	// Refusal is Slurm's answer to those who may not.
	Refusal string
	Note    string
}

// Rules returns the table of actions in the order of documents.
func Rules() []Rule { return slices.Clone(rules) }

// Find returns the rule of an action; ok is false where there is none, which
// nobody may do.
func Find(o Object, a Action) (r *Rule, ok bool) {
	for i := range rules {
		if rules[i].Object == o && rules[i].Action == a {
			return &rules[i], true
		}
	}
	return nil, false
}

// May returns the most that any of the roles may do. An action without a rule
// is denied.
func May(s Roles, o Object, a Action) Grant {
	r, ok := Find(o, a)
	if !ok {
		return Deny
	}
	return r.Grant(s)
}

// Grant returns the most that any of the roles may do.
func (r *Rule) Grant(s Roles) Grant {
	best := Deny
	for role, g := range r.Roles {
		if s.Has(role) {
			best = max(best, g)
		}
	}
	return best
}
