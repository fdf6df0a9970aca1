package sacctmgr

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// edit is one add, modify or delete command: the state that it changes, and what it
// prints.
type edit struct {
	state *state
	shown strings.Builder
}

func (e *edit) printf(format string, args ...any) { fmt.Fprintf(&e.shown, format, args...) }

// printNames shows a title and a list of names.
func (e *edit) printNames(title string, names []string) {
	e.printf(" %s\n", title)
	for _, name := range names {
		e.printf("  %s\n", name)
	}
}

// entity is a kind of object that can be edited. An operation that is nil does
// not exist.
type entity struct {
	name                string
	add, modify, remove func(*edit, []keyvalue.Pair) error
}

var entities = []entity{
	{"account", addAccounts, modifyAccounts, removeAccounts},
	{"user", addUsers, modifyUsers, removeUsers},
	{"qos", addQOS, modifyQOS, removeQOS},
	{"coordinator", addCoordinators, nil, removeCoordinators},
	{"cluster", refuseCluster, modifyCluster, refuseCluster},
}

// findEntity returns the entity that a word of at least two letters names, in
// the singular or plural, or nil.
func findEntity(word string) *entity {
	singular := strings.TrimSuffix(strings.ToLower(word), "s")
	for i := range entities {
		name := entities[i].name
		if keyvalue.Abbreviates(singular, strings.TrimSuffix(name, "s"), 2) || keyvalue.Abbreviates(word, name, 2) {
			return &entities[i]
		}
	}
	return nil
}

// What Slurm says of an entity that cannot be edited.
const (
	editableEntities = `Input line must include "Account", "Cluster", "Coordinator", "Federation", ` +
		`"QOS", "Resource", or "User"`
	modifiableEntities = `Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User"`
)

func (o *Options) add(ctx context.Context, words []string) error {
	return o.edit(ctx, "add", editableEntities, func(e *entity) editFunc { return e.add }, words)
}

func (o *Options) remove(ctx context.Context, words []string) error {
	return o.edit(ctx, "delete", editableEntities, func(e *entity) editFunc { return e.remove }, words)
}

func (o *Options) modify(ctx context.Context, words []string) error {
	return o.edit(ctx, "modify", modifiableEntities, func(e *entity) editFunc { return e.modify }, words)
}

type editFunc = func(*edit, []keyvalue.Pair) error

// edit computes the changes of a command, prints them, asks for confirmation and
// requests them.
func (o *Options) edit(
	ctx context.Context, verb, valid string, operation func(*entity) editFunc, words []string,
) error {
	if err := o.refuseReadonly(); err != nil {
		return err
	}
	s, err := o.readState(ctx)
	if err != nil {
		return err
	}
	var run editFunc
	if len(words) > 0 {
		if found := findEntity(words[0]); found != nil {
			run = operation(found)
		}
	}
	if run == nil {
		fmt.Fprintf(o.p.Err, "No valid entity in %s command\n%s\n", verb, valid)
		return failed()
	}
	e := &edit{state: s}
	err = run(e, keyvalue.ParseAll(words[1:]))
	o.printUnlessQuiet(e.shown.String())
	if err != nil {
		return o.explain(err)
	}
	changes := s.changes()
	switch {
	case len(changes) > 0:
		return o.commit(ctx, changes)
	case verb == "modify": // everything had its new value already
		return nil
	}
	return failed()
}

func (o *Options) refuseReadonly() error {
	if !o.readonly {
		return nil
	}
	fmt.Fprintln(o.p.Err, "Can't run this command in readonly mode.")
	return failed()
}

const commitQuestion = "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): "

// commit has the changes made if the user confirms them.
func (o *Options) commit(ctx context.Context, changes []status.AcctChange) error {
	if !o.yes {
		ok, err := o.confirm(commitQuestion)
		if err != nil {
			return err
		}
		if !ok {
			o.printUnlessQuiet(" Changes Discarded\n")
			return failed()
		}
	}
	err := o.manager.Manage(ctx, changes)
	if kube.KindOf(err) == kube.Forbidden {
		fmt.Fprintf(o.p.Err, "sacctmgr: error: Your user doesn't have privilege to perform this action\n")
	}
	if err != nil {
		fmt.Fprintf(o.p.Err, " Error with request: %v\n", err)
		return failed()
	}
	return nil
}

// validName matches the names that an object can have if "-" takes the place of
// "_".
var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([-_a-z0-9.]*[a-z0-9])?$`)
})

// checkName refuses a name that no object can have.
func checkName(kind, name string) error {
	if len(name) > 253 || !validName().MatchString(name) {
		return refusef(" %s '%s' cannot be created: a name has lower-case letters, digits, '_', '-' and '.'", kind,
			name)
	}
	return nil
}

// splitWhereSet returns the words after "where", which may be missing, and those
// after "set".
func splitWhereSet(words []keyvalue.Pair) (where, set []keyvalue.Pair) {
	to := &where
	for _, p := range words {
		switch {
		case p.Key == "" && strings.EqualFold(p.Value, "set"):
			to = &set
		case p.Key == "" && strings.EqualFold(p.Value, "where"):
			to = &where
		default:
			*to = append(*to, p)
		}
	}
	return where, set
}

// Slurm's messages about commands without settings or conditions.
const (
	nothingToSet       = " You didn't give me anything to set"
	noRemoveConditions = " No conditions given to remove, not executing."
)

// namesCluster reports whether the value names this cluster.
func (s *state) namesCluster(p keyvalue.Pair) bool {
	return slices.Contains(p.LowerList(), strings.ToLower(s.cluster))
}

// requireCluster refuses a cluster that does not exist.
func (s *state) requireCluster(p keyvalue.Pair) error {
	if s.namesCluster(p) {
		return nil
	}
	return refusef(" This cluster '%s' doesn't exist.\n        Contact your admin to add it to accounting.", p.Value)
}

// filter returns the elements for which keep is true; nil if there are none. It
// does not modify list.
func filter[T any](list []T, keep func(T) bool) []T {
	var out []T
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

func refuseCluster(*edit, []keyvalue.Pair) error {
	return refusef(" There is one cluster: its parameters are those of the Cluster object (kubectl edit clusters.berth.hpc)")
}

func modifyCluster(e *edit, words []keyvalue.Pair) error {
	if _, set := splitWhereSet(words); len(set) == 0 || set[0].Key == "" {
		return refusef(nothingToSet)
	}
	return refuseCluster(e, words)
}
