package usersync

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// world is a cluster and a source, ldap.
type world struct {
	*testing.T
	cfg      Config
	users    map[string]*v1alpha1.User
	accounts []*v1alpha1.Account
	entries  []usersource.Entry
	groups   int
	err      error
	others   []listing
}

func newWorld(t *testing.T, policy Policy) *world {
	w := &world{T: t, users: map[string]*v1alpha1.User{}, groups: 1}
	w.cfg = Config{Sources: []SourceConfig{{Name: "ldap"}}, Policy: policy}
	if err := w.cfg.complete(); err != nil && !strings.Contains(err.Error(), "set one of ldap, file, scim and openid") {
		t.Fatal(err)
	}
	return w
}

func (w *world) plan() *plan {
	w.Helper()
	in := input{policy: &w.cfg.Policy, accounts: w.accounts, listings: append([]listing{{
		source: "ldap", err: w.err, Listing: usersource.Listing{Entries: slices.Clone(w.entries), Groups: w.groups},
	}}, w.others...)}
	for _, u := range w.users {
		in.users = append(in.users, u)
	}
	return makePlan(in)
}

// apply makes a plan and does what it says. A second plan must have nothing to write.
func (w *world) apply() *plan {
	w.Helper()
	p := w.plan()
	for _, u := range p.apply {
		if have := w.users[u.Name]; have != nil {
			w.users[u.Name] = overlay(have, u, &w.cfg.Policy)
		} else {
			w.users[u.Name] = u.DeepCopy()
		}
	}
	for _, a := range w.accounts {
		if c, ok := p.coordinators[a.Name]; ok {
			a.Spec.Coordinators = c
		}
	}
	if again := w.plan(); len(again.apply) > 0 || len(again.coordinators) > 0 {
		w.Errorf("the next plan writes %v and %v again", written(again), again.coordinators)
	}
	return p
}

func written(p *plan) []string {
	var names []string
	for _, u := range p.apply {
		names = append(names, u.Name)
	}
	return names
}

func (w *world) wantProblem(p *plan, want string) {
	w.Helper()
	if !slices.ContainsFunc(p.problems, func(text string) bool { return strings.Contains(text, want) }) {
		w.Errorf("problems %q, want %q", p.problems, want)
	}
}

func entry(name string, uid int64, groups ...string) usersource.Entry {
	return usersource.Entry{Name: name, UID: uid, GID: 3000, MemberOf: groups, Shell: "/bin/bash"}
}

// many returns n users, with uids from 2000.
func many(n int) []usersource.Entry {
	var out []usersource.Entry
	for i := range n {
		out = append(out, entry(fmt.Sprint("u", i), int64(2000+i)))
	}
	return out
}

func TestNewAndChangedUsers(t *testing.T) {
	w := newWorld(t, Policy{Home: "/homes/%u", Identities: []string{"oidc:%u"}})
	e := entry("first.last", 2001)
	e.SSHKeys = []string{"ssh-rsa B", "ssh-rsa A", "ssh-rsa B"}
	e.Groups = []v1alpha1.Group{{Name: "physics", GID: 3001}, {Name: "Domain Users", GID: 3000}, {Name: "disk", GID: 6}}
	w.entries = []usersource.Entry{e}
	p := w.apply()
	want := v1alpha1.UserSpec{
		UID: 2001, GID: 3000, Groups: []v1alpha1.Group{{GID: 3000}, {Name: "physics", GID: 3001}},
		Home: "/homes/first.last", Shell: "/bin/bash", SSHKeys: []string{"ssh-rsa A", "ssh-rsa B"},
		Namespace: "user-first-last", Identities: []string{"oidc:first.last"},
	}
	if got := w.users["first.last"]; !reflect.DeepEqual(got.Spec, want) || got.Labels[v1alpha1.LabelSource] != "ldap" {
		t.Errorf("%+v", got)
	}
	w.wantProblem(p, `the group "disk" is left out: its gid 6`)
	// What others set stays.
	w.users["first.last"].Spec.DefaultQOS, w.users["first.last"].Spec.AdminLevel = "high", "Operator"
	w.entries[0].Shell, w.entries[0].GID = "/bin/zsh", 3001
	w.apply()
	got := w.users["first.last"].Spec
	if got.Shell != "/bin/zsh" || got.GID != 3001 || got.DefaultQOS != "high" || got.AdminLevel != "Operator" {
		t.Errorf("%+v", got)
	}
}

func TestRefusedEntries(t *testing.T) {
	for want, change := range map[string]func(*usersource.Entry){
		"the name has other characters": func(e *usersource.Entry) { e.Name = "A\x1b[2J" },
		"one of the system":             func(e *usersource.Entry) { e.Name = "root" },
		"the uid 0 is not within":       func(e *usersource.Entry) { e.UID = 0 },
		"the uid 999 is not within":     func(e *usersource.Entry) { e.UID = 999 },
		"the uid -1 is not within":      func(e *usersource.Entry) { e.UID = -1 },
		"the uid 65534 is not within":   func(e *usersource.Entry) { e.UID = 65534 },
		"the uid 4294967295 is not":     func(e *usersource.Entry) { e.UID = 1<<32 - 1 },
		"the gid 0 is not within":       func(e *usersource.Entry) { e.GID = 0 },
		`"/home/x\nroot:x:0" is not a`:  func(e *usersource.Entry) { e.Home = "/home/x\nroot:x:0" },
		`"relative" is not a path`:      func(e *usersource.Entry) { e.Home = "relative" },
		`"/home/../etc" is not a path`:  func(e *usersource.Entry) { e.Home = "/home/../etc" },
		`"bash" is not a path`:          func(e *usersource.Entry) { e.Shell = "bash" },
	} {
		w := newWorld(t, Policy{})
		e := entry("ann", 2001)
		change(&e)
		w.entries = []usersource.Entry{e}
		p := w.apply()
		w.wantProblem(p, want)
		if len(w.users) != 0 {
			t.Errorf("%s: %v", want, w.users)
		}
	}
	w := newWorld(t, Policy{UIDs: Range{Min: 5000, Max: 5001}, GIDs: Range{Min: 100}})
	w.entries = []usersource.Entry{entry("a", 4999), entry("b", 5000), entry("c", 5001), entry("d", 5002)}
	w.entries[1].GID = 100
	w.apply()
	if len(w.users) != 2 || w.users["b"] == nil || w.users["c"] == nil {
		t.Errorf("%v", w.users)
	}
}

// TestClashes: the older one keeps the name, the uid and the namespace.
func TestClashes(t *testing.T) {
	w := newWorld(t, Policy{})
	w.entries = []usersource.Entry{entry("ann", 2001)}
	w.apply()
	local := &v1alpha1.User{}
	local.Name, local.Spec.UID, local.Spec.Namespace = "local", 2050, "user-x-y"
	w.users["local"] = local
	w.entries = []usersource.Entry{
		entry("ann", 2001), entry("ben", 2001), entry("local", 2003), entry("cy", 2050), entry("x.y", 2006),
		entry("d", 2007), entry("e", 2007), entry("twice", 2008), entry("twice", 2009),
	}
	p := w.apply()
	for _, want := range []string{
		`"ben" is refused: its uid 2001 is that of the user ann`, `"cy" is refused: its uid 2050 is that of the user local`,
		`"local" is refused: there is a User of that name which no source keeps`, "kubectl label user.berth.hpc local berth.hpc/source=ldap",
		`"x.y" is refused: its namespace user-x-y is that of the user local`, "the new users d, e are refused: they have the same uid 2007",
		`"twice" is refused: the source has several of that name`,
	} {
		w.wantProblem(p, want)
	}
	if len(w.users) != 2 || w.users["local"].Spec.UID != 2050 || w.users["local"].Labels != nil {
		t.Errorf("%v", w.users)
	}
	// Handed over by the label, with the same uid.
	w.users["local"].Labels = map[string]string{v1alpha1.LabelSource: "ldap"}
	w.entries = []usersource.Entry{entry("ann", 2001), entry("local", 2050)}
	w.apply()
	if got := w.users["local"].Spec; got.Shell != "/bin/bash" || got.Namespace != "user-x-y" {
		t.Errorf("%+v", got)
	}
	// Two Users with the same uid are reported, also if no source made them.
	other := local.DeepCopy()
	other.Name, other.Labels = "other", nil
	w.users["other"] = other
	p = w.plan()
	w.wantProblem(p, "the users local, other have the same uid 2050")
	w.wantProblem(p, "the users local, other have the same namespace user-x-y")
}

// TestReusedName: somebody else of the same name gets neither the uid nor the files of the
// one before.
func TestReusedName(t *testing.T) {
	w := newWorld(t, Policy{})
	w.entries = []usersource.Entry{entry("ann", 2001)}
	w.entries[0].SSHKeys = []string{"ssh-rsa OLD"}
	w.apply()
	w.entries = []usersource.Entry{entry("ann", 2002)}
	w.entries[0].SSHKeys = []string{"ssh-rsa NEW"}
	p := w.apply()
	w.wantProblem(p, "its uid was 2001 and is 2002 now")
	if got := w.users["ann"].Spec; got.UID != 2001 || got.SSHKeys[0] != "ssh-rsa OLD" || !got.Disabled {
		t.Errorf("%+v", got)
	}
	w.entries[0].UID = 2001 // a mistake in the directory
	w.apply()
	if got := w.users["ann"].Spec; got.Disabled || got.SSHKeys[0] != "ssh-rsa NEW" {
		t.Errorf("%+v", got)
	}
}

func TestDisabledAndVanishedUsers(t *testing.T) {
	w := newWorld(t, Policy{Administrators: []string{"admins"}})
	w.entries = []usersource.Entry{entry("ann", 2001, "admins"), entry("ben", 2002), entry("cy", 2003)}
	w.apply()
	if w.users["ann"].Spec.AdminLevel != "Administrator" || w.users["ben"].Spec.AdminLevel != "None" {
		t.Errorf("levels %q, %q", w.users["ann"].Spec.AdminLevel, w.users["ben"].Spec.AdminLevel)
	}
	w.entries[0].Disabled, w.entries[1].Shell = true, "/usr/sbin/nologin"
	w.entries = w.entries[:2]
	p := w.apply()
	w.wantProblem(p, "user cy is disabled: the source ldap does not have it any more")
	for name, reason := range map[string]string{
		"ann": "disabled in the source ldap", "ben": "its shell in the source ldap is /usr/sbin/nologin", "cy": "not in the source ldap",
	} {
		u := w.users[name]
		if !u.Spec.Disabled || u.Annotations[AnnotationDisabled] != reason || u.Spec.AdminLevel != "None" {
			t.Errorf("%s: %+v", name, u)
		}
	}
	w.entries = []usersource.Entry{entry("ann", 2001, "admins"), entry("ben", 2002), entry("cy", 2003)}
	w.apply()
	for _, u := range w.users {
		if u.Spec.Disabled || u.Annotations[AnnotationDisabled] != "" {
			t.Errorf("%s is not enabled again: %+v", u.Name, u)
		}
	}
	// A user whom an administrator has disabled stays so.
	w.users["ben"].Spec.Disabled = true
	w.entries[1].Shell = "/bin/zsh"
	w.apply()
	if got := w.users["ben"].Spec; !got.Disabled || got.Shell != "/bin/zsh" {
		t.Errorf("%+v", got)
	}
}

// TestTooManyMissing: a source that lacks many of its users is wrong, and so is an empty one.
func TestTooManyMissing(t *testing.T) {
	w := newWorld(t, Policy{})
	w.entries = many(100)
	w.apply()
	enabled := func() (n int) {
		for _, u := range w.users {
			if !u.Spec.Disabled {
				n++
			}
		}
		return n
	}
	w.entries = many(89)
	p := w.apply()
	w.wantProblem(p, "11 of 100 users are missing, and none of them is disabled")
	if enabled() != 100 || p.kept["ldap"] != 11 {
		t.Errorf("%d enabled, kept %v", enabled(), p.kept)
	}
	w.entries = append(many(89), entry("new", 9000)) // what it lists counts nevertheless
	w.entries[0].Shell = "/bin/zsh"
	w.apply()
	if w.users["new"] == nil || w.users["u0"].Spec.Shell != "/bin/zsh" {
		t.Error("the users that the source has were not updated")
	}
	w.entries = nil
	if p = w.apply(); enabled() != 101 || p.kept["ldap"] != 101 {
		t.Errorf("an empty answer: %d enabled, kept %v", enabled(), p.kept)
	}
	w.entries = append(many(91), entry("new", 9000))
	if w.apply(); enabled() != 92 {
		t.Errorf("%d enabled", enabled())
	}
	w.cfg.MaxRemoved = 100
	w.entries = many(1)
	if w.apply(); enabled() != 1 {
		t.Errorf("%d enabled", enabled())
	}
	w.entries = nil // the last one may have left, but more likely the answer is wrong
	if w.apply(); enabled() != 1 {
		t.Errorf("%d enabled", enabled())
	}
}

// TestSourceIsAway: nothing changes, and other sources are followed.
func TestSourceIsAway(t *testing.T) {
	w := newWorld(t, Policy{})
	w.entries = []usersource.Entry{entry("ann", 2001)}
	w.entries[0].Groups = []v1alpha1.Group{{Name: "g", GID: 3000}}
	w.others = []listing{{source: "file", Listing: usersource.Listing{Entries: []usersource.Entry{entry("ann", 2002), entry("ben", 2003)}}}}
	p := w.apply()
	w.wantProblem(p, `source file: user "ann" is refused: the source ldap has a user of that name`)
	w.err = errors.New("connection refused")
	w.others[0].Entries = []usersource.Entry{entry("ann", 2002), entry("ben", 2003), entry("cy", 2001), entry("di", 2005)}
	p = w.apply()
	w.wantProblem(p, "source ldap: connection refused; its users stay as they are")
	w.wantProblem(p, `source file: user "ann" is refused: the User of that name belongs to the source ldap`)
	w.wantProblem(p, `source file: user "cy" is refused: its uid 2001 is that of the user ann`)
	if len(w.users) != 3 || w.users["ann"].Spec.Disabled || w.users["ann"].Spec.UID != 2001 || p.users["ldap"] != 1 {
		t.Errorf("%v %v", w.users, p.users)
	}
	// A directory that lists no groups any more is treated as one that does not answer.
	w.err, w.groups, w.entries[0].Groups = nil, 0, nil
	p = w.apply()
	w.wantProblem(p, "it lists no groups, though users have some")
	if len(w.users["ann"].Spec.Groups) != 1 {
		t.Errorf("%+v", w.users["ann"].Spec)
	}
}

func TestAllowGroups(t *testing.T) {
	w := newWorld(t, Policy{AllowGroups: []string{"hpc"}})
	w.entries = []usersource.Entry{entry("ann", 2001, "hpc", "x"), entry("ben", 2002, "HPC"), entry("root", 0)}
	if p := w.apply(); len(w.users) != 1 || len(p.problems) != 0 {
		t.Errorf("%v %q", w.users, p.problems)
	}
	w.entries[0].MemberOf = nil
	if w.apply(); !w.users["ann"].Spec.Disabled {
		t.Error("a user who left the group is enabled")
	}
}

func TestAccountsAndCoordinators(t *testing.T) {
	account := func(name string, coordinators ...string) *v1alpha1.Account {
		a := &v1alpha1.Account{}
		a.Name, a.Spec.Coordinators = name, coordinators
		return a
	}
	w := newWorld(t, Policy{
		Accounts:     []AccountRule{{"phys", "physics"}, {"chem", "chemistry"}, {"bio", "biology"}},
		Coordinators: []AccountRule{{"pis", "physics"}, {"pis", "nothing"}},
	})
	w.accounts = []*v1alpha1.Account{account("physics", "boss", "ann"), account("chemistry", "boss")}
	w.entries = []usersource.Entry{entry("ann", 2001, "chem", "phys"), entry("ben", 2002, "pis", "bio"), entry("cy", 2003, "pis"), entry("di", 2004)}
	w.entries[2].Disabled = true
	p := w.apply()
	w.wantProblem(p, "there is no account biology, which members of bio should have")
	w.wantProblem(p, "there is no account nothing, which members of pis should have")
	if got := w.users["ann"].Spec; got.DefaultAccount != "physics" || !slices.Equal(got.Accounts, []string{"physics", "chemistry"}) {
		t.Errorf("%+v", got)
	}
	if got := w.users["di"].Spec; got.DefaultAccount != "" || got.Accounts != nil {
		t.Errorf("%+v", got)
	}
	// boss is no user of a source, ann no longer in the group, and cy disabled.
	if got := w.accounts[0].Spec.Coordinators; !slices.Equal(got, []string{"ben", "boss"}) {
		t.Errorf("coordinators %q", got)
	}
	if got := w.accounts[1].Spec.Coordinators; !slices.Equal(got, []string{"boss"}) {
		t.Errorf("coordinators of an account without a rule: %q", got)
	}
	// Limits and the default that sacctmgr has set stay while the user is in the group.
	ann := w.users["ann"]
	ann.Spec.DefaultAccount = "chemistry"
	ann.Spec.Associations = []v1alpha1.Association{{Account: "physics", DefaultQOS: "a"}, {Account: "chemistry", DefaultQOS: "b"}}
	w.entries[0].Shell = "/bin/zsh"
	w.apply()
	if got := w.users["ann"].Spec; got.DefaultAccount != "chemistry" || len(got.Associations) != 2 {
		t.Errorf("%+v", got)
	}
	w.entries[0].MemberOf = []string{"phys"}
	w.apply()
	if got := w.users["ann"].Spec; got.DefaultAccount != "physics" || len(got.Associations) != 1 || got.Associations[0].DefaultQOS != "a" {
		t.Errorf("%+v", got)
	}
	w.err = errors.New("away")
	w.apply()
	if got := w.accounts[0].Spec.Coordinators; !slices.Equal(got, []string{"ben", "boss"}) {
		t.Errorf("coordinators while the directory is away: %q", got)
	}
}

func TestReadConfig(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "sources: there is none",
		"sources: [{name: a}]":                   "set one of ldap, file, scim and openid",
		"sources: [{file: {path: x}}]":           "is not one of a label",
		"sources: [{name: a, file: {path: x}}]":  "",
		"sources: [{name: a, file: {pth: x}}]":   "unknown field",
		good + "interval: 10ms":                  "at least 1s",
		good + "uids: {min: 0, max: 4294967295}": "uids: 1000 to 4294967295",
		good + "uids: {min: 5, max: 3}":          "is not a range",
		good + "home: x":                         "is not an absolute path",
		good + "namespacePrefix: User_":          "cannot begin the name",
		good + "maxRemovedPercent: 101":          "is not in 1 to 100",
		good + "identities: [x]":                 "is without %u",
		good + `identities: ["system:%u"]`:       "one of Kubernetes' own",
		good + "accounts: [{group: x}]":          "set both group and account",
		good + "homeProgram: mkhome":             "is not an absolute path",
		good + "administrators: [a]":             "",
	} {
		path := t.TempDir() + "/directory.yaml"
		writeFile(t, path, text)
		c, err := ReadConfig(path)
		if want == "" && err == nil {
			if got := c.Sources[0].File.Path; !strings.HasPrefix(got, "/") {
				t.Errorf("%s: the path %s", text, got)
			}
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const good = "sources: [{name: a, file: {path: x}}]\n"
