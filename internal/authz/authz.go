// Package authz defines who may do what in a cluster, as two tables: one of actions
// and one of a job's fields. Admission, the queue API, its operations and accounting
// all decide by them, so that no entry point permits more than another, and
// docs/authorization.md is generated from them.
//
// The package is pure and has no Kubernetes types. Roles come from
// directory.Directory.
package authz

import "slices"

// Role is the relation of a caller to the object of a request.
type Role uint8

// The roles. A caller may have several: an operator may own the job as well.
const (
	// Anyone is every caller whom the API server has authenticated.
	Anyone Role = iota
	// User is a user of the cluster, whether or not the object is the user's.
	User
	// Owner is the user to whom the object belongs, or a process in one of the user's
	// jobs, which has a token of its own.
	Owner
	// Coordinator is a user who coordinates the account of the object.
	Coordinator
	Operator
	// Administrator is a user of that level, or a member of system:masters.
	Administrator
	// Controller is one of Kubernetes' own controllers.
	Controller
	// Process is one of Berth's own processes.
	Process
	numRoles
)

// names are the roles as documents call them.
var names = [numRoles]string{
	"anyone authenticated", "another user", "owner", "coordinator", "operator", "administrator",
	"Kubernetes' controllers", "Berth's processes",
}

func (r Role) String() string { return names[r] }

// Roles is a set of roles. The zero value is that of a request that the API server has
// not authenticated.
type Roles uint16

// Of returns the set of the given roles.
func Of(list ...Role) Roles {
	var s Roles
	for _, r := range list {
		s |= 1 << r
	}
	return s
}

// Has reports whether r is in the set.
func (s Roles) Has(r Role) bool { return s&(1<<r) != 0 }

// And returns the set with r added.
func (s Roles) And(r Role) Roles { return s | 1<<r }

// Grant is the extent to which an action is allowed.
type Grant uint8

// The grants, each including those before it.
const (
	Deny Grant = iota
	// Public is allowed unless the cluster's PrivateData names the rule's kind.
	Public
	// Optional is allowed where the cluster's parameters say so (Rule.Option).
	Optional
	// Limited is allowed within the bounds that Rule.Note or Field.Bound describes.
	Limited
	Allow
)

// Object is a kind of object that requests are about.
type Object string

// Action is what a request does to an Object. The actions of jobs are the verbs of the
// queue API's operations (status.Op...) and some others.
type Action string

// Rule is one row of the table of actions.
type Rule struct {
	Object Object
	Action Action
	// Roles are those that may, each with its grant; callers with none of them may
	// not. Administrators and Berth's processes are listed like other roles.
	Roles map[Role]Grant
	// Private is the word of PrivateData that the grant Public depends on.
	Private string
	// Option is the parameter that the grant Optional depends on.
	Option string
	// Refusal is Slurm's message for callers who may not.
	Refusal string
	Note    string
}

// Rules returns the table of actions in the order of the documentation.
func Rules() []Rule { return slices.Clone(rules) }

// Find returns the rule of an action; ok is false if there is none, so that nobody may
// do it.
func Find(o Object, a Action) (r *Rule, ok bool) {
	for i := range rules {
		if rules[i].Object == o && rules[i].Action == a {
			return &rules[i], true
		}
	}
	return nil, false
}

// May returns the highest grant that any of the roles has. An action without a rule is
// denied.
func May(s Roles, o Object, a Action) Grant {
	r, ok := Find(o, a)
	if !ok {
		return Deny
	}
	return r.Grant(s)
}

// Grant returns the highest grant that any of the roles has.
func (r *Rule) Grant(s Roles) Grant {
	best := Deny
	for role, g := range r.Roles {
		if s.Has(role) {
			best = max(best, g)
		}
	}
	return best
}
