package usersync

import (
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// listing is what a source returned, or why it did not.
type listing struct {
	source string
	usersource.Listing
	err error
}

// input is everything that a plan depends on.
type input struct {
	policy   *Policy
	listings []listing // in the order of the configuration
	users    []*v1alpha1.User
	accounts []*v1alpha1.Account
}

// plan is what has to be written.
type plan struct {
	// apply are Users with only the fields that the sources decide.
	apply []*v1alpha1.User
	// coordinators are the new lists of accounts.
	coordinators map[string][]string
	// problems are sentences for administrators, sorted, none twice.
	problems []string
	// kept is, by source, how many users are missing but were not disabled, since they are
	// too many.
	kept map[string]int
	// users counts the enabled users of each source.
	users map[string]int
}

// few users may always vanish from a source.
const few = 5

// planner makes a plan.
type planner struct {
	in          input
	out         plan
	existing    map[string]*v1alpha1.User
	byUID       map[int64][]string  // names of Users
	byNamespace map[string][]string // names of Users
	accepted    map[string]*candidate
	found       map[string]bool // problems
}

// candidate is an entry that the policy accepts, and the User that it becomes.
type candidate struct {
	*usersource.Entry
	source string
	user   *v1alpha1.User
}

// makePlan decides what has to be written. It is a function of its input.
func makePlan(in input) *plan {
	p := &planner{
		in: in, existing: map[string]*v1alpha1.User{}, byUID: map[int64][]string{},
		byNamespace: map[string][]string{}, accepted: map[string]*candidate{}, found: map[string]bool{},
	}
	p.out.kept, p.out.users = map[string]int{}, map[string]int{}
	for _, u := range in.users {
		p.existing[u.Name] = u
		p.byUID[u.Spec.UID] = append(p.byUID[u.Spec.UID], u.Name)
		p.byNamespace[u.Spec.Namespace] = append(p.byNamespace[u.Spec.Namespace], u.Name)
	}
	p.reportClashes()
	for i := range p.in.listings {
		p.checkGroups(&p.in.listings[i])
		p.accept(&p.in.listings[i])
	}
	p.refuseNewClashes()
	for i := range p.in.listings {
		p.disableMissing(&p.in.listings[i])
	}
	for _, name := range slices.Sorted(maps.Keys(p.accepted)) {
		p.write(p.accepted[name].user)
	}
	p.coordinate()
	p.out.problems = slices.Sorted(maps.Keys(p.found))
	return &p.out
}

func (p *planner) problem(format string, args ...any) { p.found[fmt.Sprintf(format, args...)] = true }

// reportClashes reports Users that have the same uid or namespace.
func (p *planner) reportClashes() {
	for uid, names := range p.byUID {
		if len(names) > 1 {
			slices.Sort(names)
			p.problem("the users %s have the same uid %d", list(names), uid)
		}
	}
	for namespace, names := range p.byNamespace {
		if len(names) > 1 {
			slices.Sort(names)
			p.problem("the users %s have the same namespace %s", list(names), namespace)
		}
	}
}

// checkGroups discards a listing without groups of a source whose users had some: it does not
// see them any more, and everybody would lose every group.
func (p *planner) checkGroups(l *listing) {
	if l.err != nil || l.Groups > 0 {
		return
	}
	for _, u := range p.in.users {
		if u.Labels[v1alpha1.LabelSource] == l.source && len(u.Spec.Groups) > 0 {
			l.err = fmt.Errorf("it lists no groups, though users have some")
			return
		}
	}
}

// accept adds the users of a listing that the policy accepts.
func (p *planner) accept(l *listing) {
	if l.err != nil {
		p.problem("source %s: %v; its users stay as they are", l.source, l.err)
		return
	}
	for _, text := range l.Problems {
		p.problem("source %s: %s", l.source, text)
	}
	names := map[string]int{}
	for i := range l.Entries {
		names[l.Entries[i].Name]++
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if len(p.in.policy.AllowGroups) > 0 && !intersect(p.in.policy.AllowGroups, e.MemberOf) {
			continue
		}
		if why := p.refusal(l.source, e, names[e.Name]); why != "" {
			p.problem("source %s: user %q is refused: %s", l.source, e.Name, why)
			continue
		}
		p.accepted[e.Name] = &candidate{e, l.source, p.desired(l.source, e)}
	}
}

// refusal returns why an entry does not become a User, or "". times is how often its name is
// in the listing.
func (p *planner) refusal(source string, e *usersource.Entry, times int) string {
	if why := p.in.policy.invalid(e); why != "" {
		return why
	}
	have := p.existing[e.Name]
	switch {
	case p.accepted[e.Name] != nil && p.accepted[e.Name].source != source:
		return "the source " + p.accepted[e.Name].source + " has a user of that name"
	case p.accepted[e.Name] != nil, have == nil && times > 1, have != nil && times > 1 && have.Spec.UID != e.UID:
		return "the source has several of that name"
	case have != nil && have.Labels[v1alpha1.LabelSource] == "":
		return fmt.Sprintf("there is a User of that name which no source keeps; to hand it over: "+
			"kubectl label user.berth.hpc %s %s=%s", e.Name, v1alpha1.LabelSource, source)
	case have != nil && have.Labels[v1alpha1.LabelSource] != source:
		return fmt.Sprintf("the User of that name belongs to the source %s", have.Labels[v1alpha1.LabelSource])
	case have != nil && have.Spec.UID != e.UID:
		return fmt.Sprintf("its uid was %d and is %d now; if it is the same person, delete the User",
			have.Spec.UID, e.UID)
	}
	for _, other := range p.byUID[e.UID] {
		if other != e.Name && have == nil {
			return fmt.Sprintf("its uid %d is that of the user %s", e.UID, other)
		}
	}
	for _, other := range p.byNamespace[p.in.policy.namespace(e.Name)] {
		if other != e.Name && have == nil {
			return fmt.Sprintf("its namespace %s is that of the user %s", p.in.policy.namespace(e.Name), other)
		}
	}
	return ""
}

// refuseNewClashes refuses new users that share a uid or a namespace: none of them is the
// older one.
func (p *planner) refuseNewClashes() {
	seen := map[string][]string{}
	for name, c := range p.accepted {
		if p.existing[name] == nil {
			uid := fmt.Sprintf("uid %d", c.UID)
			space := "namespace " + c.user.Spec.Namespace
			seen[uid], seen[space] = append(seen[uid], name), append(seen[space], name)
		}
	}
	for what, names := range seen {
		if len(names) < 2 {
			continue
		}
		slices.Sort(names)
		p.problem("the new users %s are refused: they have the same %s", list(names), what)
		for _, name := range names {
			delete(p.accepted, name)
		}
	}
}

// disableMissing disables the users of a source that it has no longer, or that are no longer
// accepted. If too many are missing, it is the source that is wrong.
func (p *planner) disableMissing(l *listing) {
	var missing []*v1alpha1.User
	enabled := 0
	for _, u := range p.in.users {
		if u.Labels[v1alpha1.LabelSource] != l.source {
			continue
		}
		if c := p.accepted[u.Name]; c == nil && l.err == nil && !disabledHere(u) {
			missing = append(missing, u)
		}
		if !u.Spec.Disabled {
			enabled++
		}
	}
	p.out.users[l.source] = enabled
	if l.err != nil || len(missing) == 0 {
		return
	}
	if len(l.Entries) == 0 || len(missing) > max(few, enabled*p.in.policy.MaxRemoved/100) {
		p.out.kept[l.source] = len(missing)
		p.problem("source %s: %d of %d users are missing, and none of them is disabled; "+
			"if this is right, raise maxRemovedPercent", l.source, len(missing), enabled)
		return
	}
	for _, u := range missing {
		p.problem("user %s is disabled: the source %s does not have it any more", u.Name, l.source)
		p.write(withoutSource(u, p.in.policy, "not in the source "+l.source))
	}
}

// write adds a User to the plan if it differs from the one in the cluster.
func (p *planner) write(u *v1alpha1.User) {
	have := p.existing[u.Name]
	if have == nil || !apiequality.Semantic.DeepEqual(have, overlay(have, u, p.in.policy)) {
		p.out.apply = append(p.out.apply, u)
	}
	source := u.Labels[v1alpha1.LabelSource]
	switch {
	case have == nil && !u.Spec.Disabled:
		p.out.users[source]++
	case have != nil && !have.Spec.Disabled && u.Spec.Disabled:
		p.out.users[source]--
	}
}

// list returns names as text, the first few of them.
func list(names []string) string {
	const most = 5
	text := ""
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// intersect reports whether the lists have an element in common.
func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
