package usersync

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// AnnotationDisabled on a User is why it was disabled here. A User that is disabled without it
// was disabled by an administrator, and stays so.
const AnnotationDisabled = "berth.hpc/disabled-reason"

// maxNamespace is the greatest length of a namespace's name.
const maxNamespace = 63

// invalid returns why no user can have these values, or "".
func (p *Policy) invalid(e *usersource.Entry) string {
	switch {
	case !usersource.ValidName(e.Name):
		return "the name has other characters than a-z, 0-9, hyphens and dots, or more than 32"
	case reservedNames[e.Name]:
		return "the name is one of the system"
	case !p.UIDs.has(e.UID) || e.UID == nobodyID:
		return fmt.Sprintf("the uid %d is not within %s", e.UID, p.UIDs)
	case !p.GIDs.has(e.GID) || e.GID == nobodyID:
		return fmt.Sprintf("the gid %d is not within %s", e.GID, p.GIDs)
	case len(p.namespace(e.Name)) > maxNamespace:
		return "the name is too long for a namespace"
	}
	for _, path := range []string{p.home(e), p.shell(e)} {
		if !validPath(path) {
			return fmt.Sprintf("%q is not a path for a home or a shell", path)
		}
	}
	return ""
}

// reservedNames are those of Debian's and Kubernetes' own users, and of Berth's objects.
var reservedNames = names("root daemon bin sys sync games man lp mail news uucp proxy backup list irc gnats nobody " +
	"sshd messagebus systemd-network systemd-resolve systemd-timesync syslog tss polkitd admin administrator " +
	"kube-apiserver-kubelet-client kubernetes-admin kubernetes-super-admin default operator slurm munge")

func names(text string) map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(text) {
		out[name] = true
	}
	return out
}

// maxPath bounds homes and shells.
const maxPath = 255

// validPath reports whether a path can be in passwd(5); "" can.
func validPath(path string) bool {
	special := func(r rune) bool { return r < ' ' || r == 0x7f || r == ':' || r == '\ufffd' }
	return path == "" || filepath.IsAbs(path) && filepath.Clean(path) == path && len(path) <= maxPath &&
		!strings.ContainsFunc(path, special)
}

// expand replaces %u.
func expand(text, user string) string { return strings.ReplaceAll(text, "%u", user) }

func (p *Policy) home(e *usersource.Entry) string {
	if p.Home != "" {
		return expand(p.Home, e.Name)
	}
	return strings.TrimRight(e.Home, "/")
}

func (p *Policy) shell(e *usersource.Entry) string {
	if permitsNoLogin(e.Shell) {
		return e.Shell
	}
	return cmp.Or(p.Shell, e.Shell)
}

// permitsNoLogin reports whether a shell is one that ends at once.
func permitsNoLogin(shell string) bool {
	name := filepath.Base(shell)
	return name == "nologin" || name == "false"
}

// namespace returns the namespace of a new user.
func (p *Policy) namespace(user string) string {
	return p.NamespacePrefix + strings.ReplaceAll(user, ".", "-")
}

// desired returns the User that an entry becomes, with only the fields that sources decide.
func (p *planner) desired(source string, e *usersource.Entry) *v1alpha1.User {
	u := newUser(e.Name, source)
	have := p.existing[e.Name]
	u.Spec = v1alpha1.UserSpec{
		UID: e.UID, GID: e.GID, Groups: p.groups(source, e), Home: p.in.policy.home(e), Shell: p.in.policy.shell(e),
		SSHKeys: slices.Compact(slices.Sorted(slices.Values(e.SSHKeys))), Namespace: p.in.policy.namespace(e.Name),
	}
	if have != nil && have.Spec.Namespace != "" { // there may be jobs in it
		u.Spec.Namespace = have.Spec.Namespace
	}
	for _, identity := range p.in.policy.Identities {
		u.Spec.Identities = append(u.Spec.Identities, expand(identity, e.Name))
	}
	u.Spec.AdminLevel = p.in.policy.level(e.MemberOf)
	p.setAccounts(u, have, e)
	switch {
	case e.Disabled:
		disable(u, p.in.policy, "disabled in the source "+source)
	case permitsNoLogin(e.Shell):
		disable(u, p.in.policy, "its shell in the source "+source+" is "+e.Shell)
	}
	return u
}

func newUser(name, source string) *v1alpha1.User {
	return &v1alpha1.User{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "User"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelSource: source}},
	}
}

// disable disables a User of a plan.
func disable(u *v1alpha1.User, p *Policy, reason string) {
	u.Annotations = map[string]string{AnnotationDisabled: reason}
	u.Spec.Disabled = true
	if len(p.Administrators)+len(p.Operators) > 0 {
		u.Spec.AdminLevel = "None"
	}
}

// disabledHere reports whether a User was disabled by a plan.
func disabledHere(u *v1alpha1.User) bool {
	return u.Spec.Disabled && u.Annotations[AnnotationDisabled] != ""
}

// withoutSource returns a User of which the source knows nothing any more: disabled, and else
// as it is.
func withoutSource(have *v1alpha1.User, p *Policy, reason string) *v1alpha1.User {
	u := newUser(have.Name, have.Labels[v1alpha1.LabelSource])
	s := &have.Spec
	u.Spec = v1alpha1.UserSpec{
		UID: s.UID, GID: s.GID, Groups: s.Groups, Home: s.Home, Shell: s.Shell, SSHKeys: s.SSHKeys,
		Namespace: s.Namespace,
	}
	if len(p.Identities) > 0 {
		u.Spec.Identities = s.Identities
	}
	if len(p.Accounts) > 0 {
		u.Spec.DefaultAccount, u.Spec.Accounts, u.Spec.Associations = s.DefaultAccount, s.Accounts, s.Associations
	}
	disable(u, p, reason)
	return u
}

// groups returns the supplementary groups, and the name of the primary one, by gid.
func (p *planner) groups(source string, e *usersource.Entry) []v1alpha1.Group {
	var out []v1alpha1.Group
	for _, g := range e.Groups {
		if !p.in.policy.GIDs.has(g.GID) || g.GID == nobodyID {
			p.problem("source %s: the group %q is left out: its gid %d is not within %s", source, g.Name, g.GID,
				p.in.policy.GIDs)
			continue
		}
		if !usersource.ValidGroupName(g.Name) { // it has no line in group(5)
			g.Name = ""
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b v1alpha1.Group) int {
		return cmp.Or(cmp.Compare(a.GID, b.GID), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(out, func(a, b v1alpha1.Group) bool { return a.GID == b.GID })
}

// setAccounts gives a User the accounts of its groups. Limits in them, which are set with
// sacctmgr, stay.
func (p *planner) setAccounts(u, have *v1alpha1.User, e *usersource.Entry) {
	if len(p.in.policy.Accounts) == 0 {
		return
	}
	s := &u.Spec
	for _, r := range p.in.policy.Accounts {
		if slices.Contains(e.MemberOf, r.Group) && !slices.Contains(s.Accounts, r.Account) {
			s.Accounts = append(s.Accounts, r.Account)
			p.checkAccount(r)
		}
	}
	if len(s.Accounts) > 0 {
		s.DefaultAccount = s.Accounts[0]
	}
	if have == nil {
		return
	}
	if slices.Contains(s.Accounts, have.Spec.DefaultAccount) {
		s.DefaultAccount = have.Spec.DefaultAccount
	}
	for i := range have.Spec.Associations {
		if a := &have.Spec.Associations[i]; slices.Contains(s.Accounts, a.Account) {
			s.Associations = append(s.Associations, *a)
		}
	}
}

// checkAccount reports a rule about an account that does not exist, in a cluster with others.
func (p *planner) checkAccount(r AccountRule) bool {
	exists := slices.ContainsFunc(p.in.accounts, func(a *v1alpha1.Account) bool { return a.Name == r.Account })
	if !exists && len(p.in.accounts) > 0 {
		p.problem("there is no account %s, which members of %s should have", r.Account, r.Group)
	}
	return exists
}

// overlay returns the User as it is after the fields of u are applied.
func overlay(have, u *v1alpha1.User, p *Policy) *v1alpha1.User {
	out := have.DeepCopy()
	metav1.SetMetaDataLabel(&out.ObjectMeta, v1alpha1.LabelSource, u.Labels[v1alpha1.LabelSource])
	to, from := &out.Spec, &u.Spec
	to.UID, to.GID, to.Groups, to.Home, to.Shell = from.UID, from.GID, from.Groups, from.Home, from.Shell
	to.SSHKeys, to.Namespace = from.SSHKeys, from.Namespace
	if len(p.Identities) > 0 {
		to.Identities = from.Identities
	}
	if from.AdminLevel != "" {
		to.AdminLevel = from.AdminLevel
	}
	if len(p.Accounts) > 0 {
		to.DefaultAccount, to.Accounts, to.Associations = from.DefaultAccount, from.Accounts, from.Associations
	}
	switch reason := u.Annotations[AnnotationDisabled]; {
	case reason != "":
		to.Disabled = true
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, AnnotationDisabled, reason)
	case disabledHere(have):
		to.Disabled = false
		delete(out.Annotations, AnnotationDisabled)
	}
	return out
}

// coordinate computes the coordinators of the accounts with rules. Coordinators of whom no
// listing knows anything stay.
func (p *planner) coordinate() {
	p.out.coordinators = map[string][]string{}
	members := map[string]map[string]bool{} // by account
	for _, r := range p.in.policy.Coordinators {
		if !p.checkAccount(r) {
			continue
		}
		if members[r.Account] == nil {
			members[r.Account] = map[string]bool{}
		}
		for name, c := range p.accepted {
			if !c.user.Spec.Disabled && slices.Contains(c.MemberOf, r.Group) {
				members[r.Account][name] = true
			}
		}
	}
	for _, a := range p.in.accounts {
		want := members[a.Name]
		if want == nil {
			continue
		}
		for _, name := range a.Spec.Coordinators {
			if !p.known(name) {
				want[name] = true
			}
		}
		if now := sorted(want); !slices.Equal(now, slices.Sorted(slices.Values(a.Spec.Coordinators))) {
			p.out.coordinators[a.Name] = now
		}
	}
}

// known reports whether a listing decides about the user: not if no source keeps it, if its
// source is away, or if the listing lacks so many that it does not count.
func (p *planner) known(name string) bool {
	u := p.existing[name]
	if u == nil {
		return p.accepted[name] != nil
	}
	source := u.Labels[v1alpha1.LabelSource]
	for i := range p.in.listings {
		if l := &p.in.listings[i]; l.source == source {
			return l.err == nil && (p.out.kept[source] == 0 || p.accepted[name] != nil)
		}
	}
	return false
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
