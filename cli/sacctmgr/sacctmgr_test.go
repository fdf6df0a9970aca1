package sacctmgr

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
)

// database is a fake of the cluster: it returns state and records the changes.
type database struct {
	state   *status.AcctState
	changes []status.AcctChange
	refuse  error
}

func (d *database) ClusterInfo(context.Context) (map[string]any, error) {
	return map[string]any{"operator": true}, nil
}

func (d *database) Usage(context.Context, *status.UsageQuery) (*status.UsageList, error) {
	return &status.UsageList{}, nil
}

func (d *database) Associations(context.Context) (*status.AcctState, error) { return d.state, nil }

func (d *database) Manage(_ context.Context, changes []status.AcctChange) error {
	if d.refuse != nil {
		return d.refuse
	}
	d.changes = append(d.changes, changes...)
	return nil
}

func (d *database) NodeEvents(context.Context, *status.EventQuery) (*status.EventList, error) {
	return &status.EventList{}, nil
}

func (d *database) Transactions(context.Context, *status.TransactionQuery) (*status.TransactionList, error) {
	return &status.TransactionList{}, nil
}

func (d *database) Archive(context.Context, *status.ArchiveRequest) error { return nil }

func (d *database) Records(context.Context, *status.RecordQuery) (*status.RecordList, error) {
	return &status.RecordList{}, nil
}

func (d *database) Jobs(context.Context, jobs.Filter) (*status.JobList, error) {
	return &status.JobList{}, nil
}

// newDatabase returns accounts science and physics below it, the user anna in
// physics, ben in none, and the QOS high.
func newDatabase() *database {
	return &database{state: &status.AcctState{
		Cluster: "ref",
		Accounts: []status.AcctAccount{
			{Name: "physics", Parent: "science", Description: "physics", Organization: "science"},
			{Name: "science", Description: "science", Organization: "science", QOS: []string{"high"}},
		},
		Users: []status.AcctUser{
			{Name: "anna", UID: 1001, DefaultAccount: "physics", Accounts: []string{"physics"}},
			{Name: "ben", UID: 1002},
			{Name: "root"},
		},
		QOS: []status.AcctQOS{{Name: "high", Description: "high"}},
	}}
}

// result is what a command printed and its exit code.
type result struct {
	out, err string
	code     int
}

// run runs sacctmgr; in is its standard input and the content of every file.
func run(t *testing.T, d *database, in string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	p := &stdio.Process{
		Streams:   stdio.Streams{In: strings.NewReader(in), Out: &out, Err: &errs},
		LookupEnv: func(string) (string, bool) { return "", false },
		Now:       func() time.Time { return time.Unix(1_700_000_000, 0).UTC() },
		ReadFile:  func(string) ([]byte, error) { return []byte(in), nil },
	}
	err := New(p, func() (Manager, error) { return d, nil }).Run(t.Context(), args)
	slurmerr.Print(&errs, "sacctmgr", err)
	return result{out.String(), errs.String(), slurmerr.ExitCode(err)}
}

// editWith runs a command that needs no confirmation.
func editWith(t *testing.T, d *database, command string) result {
	t.Helper()
	return run(t, d, "", append([]string{"-i"}, strings.Fields(command)...)...)
}

func TestAddAccount(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "add account biology,Chemistry parent=science fairshare=3 GrpTRES=cpu=8,mem=1G qos=high")
	want := " Adding Account(s)\n  biology\n  chemistry\n Settings\n  Description     = Account Name\n" +
		"  Organization    = Parent/Account Name\n Associations\n  A = biology    C = ref       \n  A = chemistry  C = ref       \n" +
		" Settings\n  Fairshare     = 3\n  GrpTRES       = cpu=8,mem=1G\n  QOS           = high\n  Parent        = science\n"
	if got != (result{out: want}) {
		t.Errorf("%+v\nwant %q", got, want)
	}
	if len(d.changes) != 2 {
		t.Fatalf("%d changes", len(d.changes))
	}
	a := &status.AcctAccount{
		Name: "biology", Parent: "science", Description: "biology", Organization: "science", QOS: []string{"high"},
		Limits: status.Limits{Share: 3, GrpTRES: map[string]int64{"cpu": 8, "mem": 1024}},
	}
	if !reflect.DeepEqual(d.changes[0].Account, a) {
		t.Errorf("%+v, want %+v", d.changes[0].Account, a)
	}
}

func TestModifyAccount(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "modify account where name=physics set parent=root description=x")
	want := " Modified accounts...\n  physics\n Modified account associations...\n  C = ref        A = physics of science\n"
	if got != (result{out: want}) {
		t.Errorf("%+v\nwant %q", got, want)
	}
	a := d.changes[0].Account
	if a.Parent != "" || a.Description != "x" {
		t.Errorf("%+v", a)
	}
	// An account without a list of QOS starts from that of its parent.
	d = newDatabase()
	if got := editWith(t, d, "modify account physics set qos+=normal"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if a := d.changes[0].Account; !slices.Equal(a.QOS, []string{"high", "normal"}) {
		t.Errorf("%+v", a)
	}
}

// The root account gets an object with the first setting.
func TestModifyRootAccount(t *testing.T) {
	d := newDatabase()
	if got := editWith(t, d, "modify account root set maxjobs=5"); got.code != 0 || len(d.changes) != 1 {
		t.Fatalf("%+v, %d changes", got, len(d.changes))
	}
	if a := d.changes[0].Account; a.Name != "root" || a.Limits.MaxJobs != 5 || a.Organization != "root" {
		t.Errorf("%+v", a)
	}
}

func TestDeleteAccount(t *testing.T) {
	d := newDatabase()
	if got := editWith(t, d, "delete account physics,science"); got.out != " Deleting accounts...\n  science\n  physics\n" {
		t.Errorf("%+v", got)
	}
	var deleted []string
	for _, c := range d.changes {
		if c.Delete {
			deleted = append(deleted, c.Account.Name)
		} else if c.User.Name != "anna" || c.User.DefaultAccount != "" || c.User.Accounts != nil {
			t.Errorf("%+v", c.User)
		}
	}
	if !slices.Equal(deleted, []string{"physics", "science"}) {
		t.Errorf("deleted %v", deleted)
	}
}

func TestAddUser(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "add user ben account=science,physics partition=gpu maxjobs=4 adminlevel=op wckeys=k")
	want := " Adding User(s)\n  ben\n Associations =\n  U = ben       A = science    C = ref        P = gpu       \n" +
		"  U = ben       A = physics    C = ref        P = gpu       \n Non Default Settings\n  MaxJobs       = 4\n"
	if got != (result{out: want}) {
		t.Errorf("%+v\nwant %q", got, want)
	}
	u := &status.AcctUser{
		Name: "ben", UID: 1002, AdminLevel: "Operator", DefaultAccount: "science", Accounts: []string{"science", "physics"},
		WCKeys: []string{"k"}, Associations: []status.AcctAssociation{
			{Account: "science", Partition: "gpu", Limits: status.Limits{MaxJobs: 4}},
			{Account: "physics", Partition: "gpu", Limits: status.Limits{MaxJobs: 4}},
		},
	}
	if len(d.changes) != 1 || !reflect.DeepEqual(d.changes[0].User, u) {
		t.Errorf("%+v, want %+v", d.changes[0].User, u)
	}
}

func TestModifyUser(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "modify user anna set maxwall=1:00:00 adminlevel=admin")
	want := " Modified users...\n  anna\n Modified user associations...\n  C = ref        A = physics              U = anna     \n"
	if got != (result{out: want}) {
		t.Errorf("%+v\nwant %q", got, want)
	}
	u := d.changes[0].User
	if u.AdminLevel != "Administrator" || len(u.Associations) != 1 || u.Associations[0].Limits.MaxWall != 60 {
		t.Errorf("%+v", u)
	}
}

func TestDeleteUserFromAccount(t *testing.T) {
	d := newDatabase()
	d.state.Users[0].Accounts = []string{"physics", "science"}
	if got := editWith(t, d, "delete user anna account=science"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if u := d.changes[0].User; !slices.Equal(u.Accounts, []string{"physics"}) || u.DefaultAccount != "physics" {
		t.Errorf("%+v", u)
	}
	got := editWith(t, d, "delete user anna account=physics")
	if got.code != 1 || !strings.Contains(got.err, "Please change their default account first (modify user anna set defaultaccount=science)") {
		t.Errorf("%+v", got)
	}
}

func TestCoordinators(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "add coordinator account=science names=anna,ben")
	want := " Adding Coordinator User(s)\n  anna\n  ben\n To Account(s) and all sub-accounts\n  science\n"
	if got != (result{out: want}) || !slices.Equal(d.changes[0].Account.Coordinators, []string{"anna", "ben"}) {
		t.Errorf("%+v, %+v", got, d.changes)
	}
	d.state.Accounts[1].Coordinators = []string{"anna", "ben"}
	d.changes = nil
	got = editWith(t, d, "delete coordinator account=science names=anna")
	if got.code != 0 || !strings.HasSuffix(got.out, "  U = anna      A = science   \n") ||
		!slices.Equal(d.changes[0].Account.Coordinators, []string{"ben"}) {
		t.Errorf("%+v, %+v", got, d.changes)
	}
}

// TestCoordinatorsInLists: withcoord adds the coordinators of each account, those of accounts
// above it included, and the accounts that each user coordinates.
func TestCoordinatorsInLists(t *testing.T) {
	d := newDatabase()
	d.state.Accounts[1].Coordinators = []string{"anna"}
	d.state.Accounts = append(d.state.Accounts, status.AcctAccount{Name: "sub", Parent: d.state.Accounts[1].Name})
	for command, want := range map[string]string{
		"-nP show account sub withcoord":            "sub|||anna\n",
		"-nP show user anna withcoord format=u,coo": "anna|physics,science,sub\n",
	} {
		if got := editWith(t, d, command); got.out != want {
			t.Errorf("%s: %q, want %q", command, got.out, want)
		}
	}
}

func TestQOS(t *testing.T) {
	d := newDatabase()
	got := editWith(t, d, "add qos low priority=10 flags=DenyOnLimit,NoDecay preempt=high gracetime=00:05:00 usagefactor=0.5 maxwall=2:00:00")
	want := " Adding QOS(s)\n  low\n Settings\n  Description    = low\n" +
		"  Flags                    = DenyOnLimit,NoDecay\n  GraceTime                = 00:05:00\n" +
		"  MaxWall                  = 02:00:00\n  Preempt                  = high\n" +
		"  Priority                 = 10\n  UsageFactor              = 0.500000\n"
	if got != (result{out: want}) {
		t.Errorf("%+v\nwant %q", got, want)
	}
	q := &status.AcctQOS{
		Name: "low", Description: "low", Priority: 10, Flags: []string{"DenyOnLimit", "NoDecay"}, Preempt: []string{"high"},
		GraceTime: 300, UsageFactor: "0.5", Limits: status.Limits{MaxWall: 120},
	}
	if len(d.changes) != 1 || !reflect.DeepEqual(d.changes[0].QOS, q) {
		t.Errorf("%+v, want %+v", d.changes[0].QOS, q)
	}
	d.changes = nil
	if got := editWith(t, d, "delete qos high"); got.code != 0 || len(d.changes) != 2 || !d.changes[1].Delete {
		t.Errorf("%+v, %+v", got, d.changes)
	}
	if a := d.changes[0].Account; a.Name != "science" || a.QOS != nil {
		t.Errorf("%+v", a)
	}
}

// The QOS "normal" gets an object when it would cease to exist without one.
func TestNormalQOSIsMaterialized(t *testing.T) {
	d := newDatabase()
	d.state.QOS = nil
	editWith(t, d, "add qos low")
	var names []string
	for _, c := range d.changes {
		names = append(names, c.QOS.Name)
	}
	if !slices.Equal(names, []string{"low", "normal"}) {
		t.Errorf("%v", names)
	}
}

// What Slurm prints to standard output and what to standard error, with its exit
// code of 1.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ command, out, err string }{
		{"modify qos nosuch set priority=3", " Nothing modified\n", ""},
		{"delete qos nosuch", " Nothing deleted\n", ""},
		{"delete user nosuch", " Nothing deleted\n", ""},
		{"delete account nosuch", " Nothing deleted\n", ""},
		{"delete user", "", " No conditions given to remove, not executing.\n"},
		{"modify user where name=nosuch set fairshare=3", " Nothing modified\n", ""},
		{"modify user anna partition=none set fairshare=3", " Nothing modified\n", ""},
		{"modify account nosuch set fairshare=3", " Nothing modified\n", ""},
		{"modify account physics cluster=other set fairshare=3", " Nothing modified\n", ""},
		{"modify account physics", "", " You didn't give me anything to set\n"},
		{"modify account science set parent=physics", "", " Account 'science' cannot be moved below itself\n"},
		{"add user anna account=physics", " Nothing new added.\n", ""},
		{"add account science", " Nothing new added.\n", ""},
		{"add account a_", "", " Account 'a_' cannot be created: a name has lower-case letters, digits, '_', '-' and '.'\n"},
		{"add account new parent=nosuch", "", " Parent account 'nosuch' doesn't exist on cluster ref\n No associations created.\n"},
		{"add account new cluster=x", "", " This cluster 'x' doesn't exist.\n        Contact your admin to add it to accounting.\n"},
		{"add account new bogus=x", "", " Unknown option: bogus=x\n Use keyword 'where' to modify condition\n"},
		{"modify qos high set bogus=3", " Unknown option: bogus=3\n Use keyword 'where' to modify condition\n", ""},
		{"modify qos high set preemptmode=bogus", "", " Bad Preempt Mode given: preemptmode=bogus\n"},
		{"add qos bogus maxwall=bogus", "", " Bad MaxWall time format: maxwall=bogus\n"},
		{"add qos bogus maxtres=bogus=1", "", "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type bogus\n"},
		{"add qos bogus usagefactor=bogus", "", "sacctmgr: error: Invalid value for UsageFactor (bogus)\n"},
		{"add user nosuch", "", " Need name of account to add user to.\n"},
		{"add user ben account=science maxjobs=x", "",
			"sacctmgr: error: Invalid value for MaxJobs (x)\n Unknown option: maxjobs=x\n"},
		{"add user ben account=science bogus=x", "", " Unknown option: bogus=x\n"},
		{"add user ben account=science adminlevel=x", "", "sacctmgr: error: Invalid value for AdminLevel (x)\n"},
		{"modify user anna set adminlevel=bogus", " Nothing modified\n", ""},
		{"modify user anna set defaultqos=nosuch", "", "You gave a bad default qos 'nosuch'.  Use 'list qos' to get complete list.\n"},
		{"modify user anna set qos=nosuch", "", "sacctmgr: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,high\n" +
			" Unknown option: qos=nosuch\n Use keyword 'where' to modify condition\n"},
		{"modify user anna set maxwall=abc", "",
			" Bad MaxWall time format: maxwall=abc\n Unknown option: maxwall=abc\n Use keyword 'where' to modify condition\n"},
		{"modify user anna set grptres=cpu", "", "sacctmgr: error: slurmdb_format_tres_str: no TRES id found for cpu\n" +
			" Unknown option: grptres=cpu\n Use keyword 'where' to modify condition\n"},
		{"add coordinator account=nosuch names=anna", "", " You specified a non-existent account 'nosuch'.\n"},
		{"modify coordinator x", "", "No valid entity in modify command\n" + modifiableEntities + "\n"},
		{"dump", "", " We need a cluster to dump.\n"},
		{"dump nosuch", "", " Cluster nosuch doesn't exist.\n"},
		{"load", "", " No filename given, specify one with file=''\n"},
		{"bogus", "", "invalid keyword: bogus\n"},
	} {
		d := newDatabase()
		got := editWith(t, d, c.command)
		if want := (result{c.out, c.err, 1}); got != want || d.changes != nil {
			t.Errorf("%s: %+v, want %+v; %d changes", c.command, got, want, len(d.changes))
		}
	}
}

func TestReadonly(t *testing.T) {
	for _, command := range []string{"add qos low", "archive dump"} {
		got := run(t, newDatabase(), "", append([]string{"--readonly", "-i"}, strings.Fields(command)...)...)
		if got != (result{err: "Can't run this command in readonly mode.\n", code: 1}) {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

func TestConfirmation(t *testing.T) {
	for in, want := range map[string]struct {
		out     string
		changes int
	}{
		"y\n":         {commitQuestion, 1},
		"what\nYES\n": {commitQuestion + "Y or N please\n(N/y): ", 1},
		"no\n":        {commitQuestion + " Changes Discarded\n", 0},
		"":            {commitQuestion + "\n Changes Discarded\n", 0},
	} {
		d := newDatabase()
		got := run(t, d, in, "add", "qos", "low")
		if !strings.HasSuffix(got.out, want.out) || len(d.changes) != want.changes {
			t.Errorf("%q: %+v, %d changes", in, got, len(d.changes))
		}
	}
}

// A caller without permission gets Slurm's message; other errors are printed as they are.
func TestRefusedByTheServer(t *testing.T) {
	d := newDatabase()
	d.refuse = &kube.Error{Kind: kube.Forbidden, Message: "Access/permission denied"}
	got := editWith(t, d, "add qos low")
	want := "sacctmgr: error: Your user doesn't have privilege to perform this action\n Error with request: Access/permission denied\n"
	if got.err != want || got.code != 1 {
		t.Errorf("%+v", got)
	}
	d.refuse = errors.New("Access/permission denied")
	if got := editWith(t, d, "add qos low"); got.err != " Error with request: Access/permission denied\n" {
		t.Errorf("%+v", got)
	}
}

// A dump can be loaded again, by itself and after "clean".
func TestDumpAndLoad(t *testing.T) {
	d := newDatabase()
	d.state.Accounts[0].Limits = status.Limits{MaxWall: 90, GrpTRES: map[string]int64{"cpu": 4}}
	d.state.Users[0].Associations = []status.AcctAssociation{{Account: "physics", Partition: "gpu", Limits: status.Limits{MaxJobs: 2}}}
	dump := run(t, d, "", "dump", "ref").out
	for _, line := range []string{
		"Cluster - 'ref':Fairshare=1\n",
		"Account - 'physics':Description='physics':Organization='science':Fairshare=1:GrpTRES=cpu=4:MaxWall=01:30:00\n",
		"Account - 'science':Description='science':Organization='science':Fairshare=1:QOS='high'\n",
		"User - 'anna':Partition='gpu':DefaultAccount='physics':Fairshare=1:MaxJobs=2\n",
	} {
		if !strings.Contains(dump, line) {
			t.Errorf("no line %q in\n%s", line, dump)
		}
	}
	for _, words := range [][]string{{"load", "file=dump"}, {"load", "clean", "file=dump"}} {
		got := run(t, d, dump, append([]string{"-i"}, words...)...)
		if got != (result{out: " Nothing new added.\n"}) || d.changes != nil {
			t.Errorf("%v: %+v, %+v", words, got, d.changes)
		}
	}
	got := run(t, d, strings.Replace(dump, "MaxJobs=2", "MaxJobs=3", 1), "-i", "load", "file=dump")
	if got.out != " Setting user anna\n" || d.changes[0].User.Associations[0].Limits.MaxJobs != 3 {
		t.Errorf("%+v, %+v", got, d.changes)
	}
	got = run(t, d, "Account - 'a'\nUser - 'nobody'\n", "-i", "load", "file=dump")
	if !strings.HasPrefix(got.err, " line(2) There is no user 'nobody' in this cluster") || got.code != 1 {
		t.Errorf("%+v", got)
	}
}

func TestLists(t *testing.T) {
	d := newDatabase()
	d.state.Accounts[1].Limits.MaxJobs = 7
	for command, want := range map[string]string{
		"list account":                                "physics|physics|science\nroot|default root account|root\nscience|science|science\n",
		"list user":                                   "anna|physics|None\nroot|root|None\n",
		"list user format=user,account,share":         "anna||0\nroot||0\n",
		"list user format=user,account withassoc":     "anna|physics\nroot|root\n",
		"show assoc tree format=account,user,maxjobs": "root||\n root|root|\n science||7\n  physics||7\n   physics|anna|7\n",
		"show assoc where user=anna format=qos,user":  "high|anna\n",
		"show qos format=name,share":                  "high|0\n",
		"show qos format=name,usagef":                 "high|1.000000\n",
		"show cluster ref format=cluster":             "ref\n",
		"show cluster x":                              "",
		"show tres format=type,id where id=1":         "cpu|1\n",
		"show tres format=type where type=gres":       "gres\n",
		"show tres format=type,name names=":           "cpu|\nmem|\nenergy|\nnode|\nbilling|\nvmem|\npages|\n",
		"show assoc accounts= format=user":            "",
		"list account withassoc withcoord root": "root|default root account|root|ref|||1|||||||||||||||normal||\n" +
			"root|default root account|root|ref||root|1|||||||||||||||normal||\n",
		"list user withassoc withcoord anna": "anna|physics|None||ref|physics||1||7||||||high|\n",
		"show federation":                    "",
		// Recorded with Slurm 22.05.8: without information about parents there is no order of
		// the tree, and nothing is inherited.
		"show assoc WOPInfo format=account,user,parentname,qos": "physics|anna||\nroot|root||\nroot|||normal\n" +
			"science|||high\nphysics|||\n",
		"show assoc wopi tree format=account,user,maxjobs": "physics|anna|\nroot|root|\nroot||\nscience||7\nphysics||\n",
		// A list takes words of others for names.
		"show user WOPInfo":                       "",
		"show user tree":                          "",
		"list account tree":                       "",
		"show qos withassoc":                      "",
		"show user format=usagefactor,usagethres": "0.000000|0.000000\n0.000000|0.000000\n",
		"show assoc where user=anna format=usagefactor,usagethres": "0.000000|0.000000\n",
		"show assoc 5":         "",
		"list user withrawqos": "anna|physics|None\nroot|root|None\n",
	} {
		got := run(t, d, "", append([]string{"-n", "-P"}, strings.Fields(command)...)...)
		if got != (result{out: want}) {
			t.Errorf("%s: %+v, want %q", command, got, want)
		}
	}
}

// Recorded with Slurm 22.05.8, where associations have numbers in place of names.
func TestAssociationsHaveNumbers(t *testing.T) {
	for command, want := range map[string]string{
		"show assoc foo Bar": "sacctmgr: error: Invalid value for AssocId (foo)\n" +
			"sacctmgr: error: Invalid value for AssocId (bar)\n",
		"show assoc withcoord": "sacctmgr: error: Invalid value for AssocId (withcoord)\n",
		"show assoc id=x":      "sacctmgr: error: Invalid value for AssocId (x)\n",
		"show assoc names=x":   " Unknown condition: names=x\n",
	} {
		if got := run(t, newDatabase(), "", strings.Fields(command)...); got != (result{err: want, code: 1}) {
			t.Errorf("%s: %+v, want %q", command, got, want)
		}
	}
}

func TestInteractive(t *testing.T) {
	d := newDatabase()
	got := run(t, d, "list user format=user%6 \nadd qos \"low\"\ny\nbogus\nquit\nlist user\n", "-n")
	want := "sacctmgr: list user format=user%6 \n  anna \n  root \n" +
		"sacctmgr: add qos \"low\"\n Adding QOS(s)\n  low\n Settings\n  Description    = low\n" + commitQuestion +
		"sacctmgr: bogus\nsacctmgr: quit\n"
	if got.out != want || got.err != "invalid keyword: bogus\n" || got.code != 1 || len(d.changes) != 1 {
		t.Errorf("%+v\nwant %q", got, want)
	}
}
