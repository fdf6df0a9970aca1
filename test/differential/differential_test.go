package main

import (
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/translate/option"
)

// linesOf returns lines of a stream.
func linesOf(where string, texts ...string) []line {
	var out []line
	for _, t := range texts {
		out = append(out, line{where, t})
	}
	return out
}

func TestSameSeedMakesTheSameCalls(t *testing.T) {
	a, b, other := newGenerator(7), newGenerator(7), newGenerator(8)
	differ := false
	for range 2000 {
		x, y, z := a.next().String(), b.next().String(), other.next().String()
		if x != y {
			t.Fatalf("%s\n%s", x, y)
		}
		differ = differ || x != z
	}
	if !differ {
		t.Error("another seed makes the same calls")
	}
}

func TestEveryCommandAndPlaceIsGenerated(t *testing.T) {
	g := newGenerator(1)
	commands, places := map[string]bool{}, map[place]bool{}
	for range 3000 {
		c := g.next()
		commands[c.command] = true
		for _, p := range c.parts {
			places[p.place] = true
		}
	}
	for _, f := range forms {
		if !commands[f.command] {
			t.Errorf("no call of %s", f.command)
		}
	}
	if len(places) != 3 {
		t.Errorf("places %v", places)
	}
	g.only = []string{"sinfo"}
	for range 20 {
		if c := g.next(); c.command != "sinfo" {
			t.Fatalf("%s was generated, want only sinfo", c)
		}
	}
}

// A call that waits for a job or repeats without end would block the run.
func TestSkippedOptionsAreNotGenerated(t *testing.T) {
	g := newGenerator(3)
	for range 5000 {
		c := g.next()
		for _, p := range c.parts {
			if c.command == "sbatch" && p.name == "wait" || p.name == "iterate" || p.name == "help" {
				t.Fatalf("%s", c)
			}
		}
	}
}

func TestGrammarsHaveValues(t *testing.T) {
	for name, text := range grammar {
		if text == "" || strings.Count(" "+text+" ", " | ") > 2 {
			t.Errorf("%s: %q", name, text)
			continue
		}
		if classes := classesOf(text); len(slices.Concat(classes[:]...)) == 0 {
			t.Errorf("%s has no value", name)
		}
	}
	for _, name := range keyOptions {
		if grammar[name] == "" {
			t.Errorf("no grammar of %s", name)
		}
	}
	for _, name := range kinds {
		if grammar["kind "+name] == "" {
			t.Errorf("no grammar of kind %s", name)
		}
	}
}

func TestSpellings(t *testing.T) {
	g := newGenerator(1)
	o := option.Lookup(option.Sbatch, "ntasks")
	seen := map[string]bool{}
	for range 400 {
		seen[strings.Join(g.spell(o, "2", false), " ")] = true
	}
	for _, want := range []string{"--ntasks=2", "--ntasks 2", "-n2", "-n 2", "--ntas=2"} {
		if !seen[want] {
			t.Errorf("no %s among %v", want, seen)
		}
	}
}

func TestNormalForm(t *testing.T) {
	s := &side{bin: "/opt/bin", jobs: map[string]string{"running": "1003", "het": "1020"}}
	for _, c := range []struct{ command, args, text, want string }{
		{"squeue", "", " 1003 debug 1021", " J2__ debug H+1_"},
		{"sbatch", "", "Submitted batch job 1040", "Submitted batch job NEW"},
		{"sbatch", "--test-only", "sbatch: Job 2222 to start", "sbatch: Job JOB to start"},
		{"sbatch", "", "1041", "N+1"},
		{"squeue", "", "1020_[0-5] 1003.batch 1003.5", "J11__[0-5] J2__.batch J2__.5"},
		{"sprio", "", "  1003   0.0123  12", " J#__ # #"},
		{"scontrol", "show job", "   Priority=77 SchedNodeList=n1 NumNodes=1 Features=a b", "Priority=*|NumNodes=1|Features=a b"},
		{"squeue", "", "/opt/bin/squeue: x", "squeue: x"},
	} {
		n := &normalizer{side: s, fresh: "1040", command: c.command, command2: c.args}
		if got := strings.Join(n.lines(c.text+"\n"), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// Slurm's ids grow faster than Berth's, as --test-only takes one.
func TestIDsOfTheCallHaveNoWidth(t *testing.T) {
	of := func(fresh, text string) string {
		n := &normalizer{side: &side{}, fresh: fresh, command: "sbatch"}
		return strings.Join(n.lines(text), "|")
	}
	if a, b := of("9999", "job 9999 and 10000"), of("105", "job 105 and 106"); a != b {
		t.Errorf("%q and %q", a, b)
	}
}

func TestSameWidths(t *testing.T) {
	jobs := func(id string) map[string]string {
		m := map[string]string{}
		for _, q := range queue {
			m[q.name] = id
		}
		return m
	}
	p := &pair{slurm: &side{jobs: jobs("1001")}, berth: &side{jobs: jobs("2345")}}
	if err := p.sameWidths(); err != nil {
		t.Error(err)
	}
	p.berth.jobs["held"] = "999"
	if err := p.sameWidths(); err == nil {
		t.Error("ids of three and four digits pass as equally wide")
	}
}

// Another local cluster replaces the kubeconfigs of its users.
func TestConfigsAreKept(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(home+"/.local/state/berth", 0o755); err != nil {
		t.Fatal(err)
	}
	file := home + "/.local/state/berth/user.kubeconfig"
	if err := os.WriteFile(file, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	with := &user.User{Username: "alice", Uid: me.Uid, Gid: me.Gid, HomeDir: home}
	without := &user.User{Username: "bob", Uid: me.Uid, Gid: me.Gid, HomeDir: work}
	configs, err := keepConfigs(work, []*user.User{with, without})
	if err != nil || len(configs) != 1 {
		t.Fatal(configs, err)
	}
	if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(configs["alice"]); err != nil || string(got) != "first" {
		t.Errorf("%q %v", got, err)
	}
}

// The local cluster gets the configuration of the reference and the id of its next job.
func TestSameIDs(t *testing.T) {
	dir := t.TempDir()
	text := "#!/bin/sh\n[ \"$SLURM_CONF\" = " + dir + "/ref.conf ] && printf 'MaxJobId = 5\\nNEXT_JOB_ID             = 12345\\n'\n"
	if err := os.WriteFile(dir+"/scontrol", []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := sameIDs(t.Context(), &options{slurm: dir, conf: dir + "/ref.conf", state: dir + "/state"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "Include " + dir + "/ref.conf\nFirstJobId=12345\n"; err != nil || string(got) != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

func TestTimesThatAreCloseAreEqual(t *testing.T) {
	a := linesOf("out", "2026-01-01T10:00:00 0:05 1-00:00:00", "2026-01-02T10:00:00 10:00")
	b := linesOf("out", "2026-01-01T10:00:02 0:07 1-00:00:00", "2026-01-02T11:00:00 20:00")
	alignTimes(a, b)
	if b[0] != a[0] {
		t.Errorf("%v", b[0])
	}
	if b[1].text != "2026-01-02T11:00:00 20:00" {
		t.Errorf("%v: an hour is a difference", b[1])
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]float64{"0:05": 5, "1:00:00": 3600, "1-00:00:01": 86401, "90:00": 5400} {
		if d, ok := parseDuration(text); !ok || d.Seconds() != want {
			t.Errorf("%s: %v %v", text, d, ok)
		}
	}
}

func TestDifferences(t *testing.T) {
	slurm := slices.Concat(linesOf("exit", "exit 0"), linesOf("show out", "A=1", "B=2", "New=x", "C=3"))
	berth := slices.Concat(linesOf("exit", "exit 0"), linesOf("show out", "A=1", "B=9", "C=3"), linesOf("err", "warning"))
	want := []difference{{"err", "", "warning"}, {"show out", "B=2", "B=9"}, {"show out", "New=x", ""}}
	if got := differences(slurm, berth); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := differences(slurm, slurm); got != nil {
		t.Errorf("equal answers differ: %v", got)
	}
	// A job that only one of them has does not count once for each key.
	if got := differences(slurm, linesOf("err", "bad")); len(got) != 1 || got[0].where != "err" {
		t.Errorf("%v", got)
	}
	// The exit code follows from the message.
	slurm = append(linesOf("exit", "exit 1"), linesOf("err", "bad")...)
	if got := differences(slurm, linesOf("exit", "exit 0")); len(got) != 1 || got[0].where != "err" {
		t.Errorf("%v", got)
	}
	if got := differences(linesOf("exit", "exit 1"), linesOf("exit", "exit 0")); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// The systems start jobs some seconds apart: what is near in time is the same line, wherever
// it stands in a list.
func TestLinesOfCloseTimesAreTheSame(t *testing.T) {
	slurm := linesOf("out", "2026-01-01T10:00:00", "N/A", "2026-01-01T10:00:20", "2026-01-01T10:00:40")
	berth := linesOf("out", "2026-01-01T10:00:20", "N/A", "2026-01-01T10:00:40", "2026-01-01T10:00:55")
	if got := differences(slurm, berth); got != nil {
		t.Errorf("%v", got)
	}
	berth[3].text = "2026-01-01T12:00:00"
	if got := differences(slurm, berth); len(got) != 1 {
		t.Errorf("%v: two hours are a difference", got)
	}
}

func TestSignaturesOfOneCauseAreEqual(t *testing.T) {
	of := func(value, slurm string) string {
		c := &call{kind: submit, command: "sbatch", parts: []part{{name: "nodes", value: value}}}
		return (&difference{"err", slurm, ""}).signature(c)
	}
	if a, b := of("xyz", "invalid: xyz in 12"), of("abc", "invalid: abc in 7"); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := of("x", "one"), of("x", "two"); a == b {
		t.Errorf("two causes have the signature %s", a)
	}
	c := &call{kind: query, command: "squeue", parts: []part{{name: "format", value: "%j"}}}
	a := (&difference{"out", "row 1", "row 2"}).signature(c)
	if b := (&difference{"out", "other", "row"}).signature(c); a != b {
		t.Errorf("rows of one listing: %s\n%s", a, b)
	}
}

func TestShrink(t *testing.T) {
	c := &call{command: "squeue", parts: []part{
		{words: []string{"-h"}, name: "noheader"}, {words: []string{"-a"}, fixed: true},
		{words: []string{"-O", "jobid,name,state"}, name: "Format", value: "jobid,name,state"},
		{words: []string{"A=1"}, place: inVariable, name: "all"},
	}}
	comparisons := 0
	got := shrink(c, 100, func(d *call) bool {
		comparisons++
		return strings.Contains(d.String(), "name")
	})
	if got.String() != "squeue -a -O name" || comparisons == 0 {
		t.Errorf("%s after %d comparisons", got, comparisons)
	}
	if got := shrink(c, 100, func(*call) bool { return false }); got != c {
		t.Errorf("shrunk to %s, which does not differ", got)
	}
	comparisons = 0
	shrink(c, 2, func(*call) bool { comparisons++; return false })
	if comparisons != 2 {
		t.Errorf("%d comparisons, the limit is 2", comparisons)
	}
}

func TestCallAsOneLine(t *testing.T) {
	c := &call{kind: submit, command: "sbatch", parts: []part{
		{words: []string{"-n", "1 2"}}, {place: inScript, words: []string{"--mem=1"}},
		{place: inVariable, words: []string{"SBATCH_QOS=a b"}},
	}}
	if want := "SBATCH_QOS='a b' sbatch -n '1 2'  #SBATCH --mem=1"; c.String() != want {
		t.Errorf("%s, want %s", c, want)
	}
	if want := "#!/bin/sh\n#SBATCH --mem=1\ntrue\n"; c.script() != want {
		t.Errorf("%q", c.script())
	}
}

func TestSubstitution(t *testing.T) {
	u := &user.User{Username: "alice"}
	p := &pair{users: []*user.User{u, {Username: "bob"}}, cluster: "c1"}
	s := &side{jobs: map[string]string{"held": "7"}, since: "today"}
	got := p.substitute(s, []string{"#SBATCH -d after:{held}\n", "{user},{other}", "{new}_1", "{cluster}{nosuch}"}, "9")
	if want := []string{"#SBATCH -d after:7\n", "alice,bob", "9_1", "c1{nosuch}"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The script of a call names jobs of the side, as its command line does.
func TestAnswer(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/sbatch", []byte("#!/bin/sh\necho $A; cat; echo $1 >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &side{bin: bin, work: bin, timeout: time.Minute, jobs: map[string]string{"held": "7000"}}
	c := &call{kind: query, command: "sbatch", parts: []part{
		{words: []string{"{held}"}}, {place: inScript, words: []string{"-d {held}"}},
		{place: inVariable, words: []string{"A={held}"}},
	}}
	got := (&pair{users: []*user.User{u, u}}).answer(s, c).lines
	want := slices.Concat(linesOf("exit", "exit 3"), linesOf("out", "J6__", "#!/bin/sh", "#SBATCH -d J6__", "true"),
		linesOf("err", "J6__"))
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Differences of one signature are two causes if only one of them is on purpose.
func TestPurposeSeparatesCauses(t *testing.T) {
	d := difference{"show out", "NumCPUs=0", "NumCPUs=1"}
	var groups []group
	for _, value := range []string{"", "n1"} {
		c := &call{kind: submit, command: "sbatch", parts: []part{{words: []string{"-w", value}}}}
		groups = append(groups, groupOf(&example{call: c, difference: d}))
	}
	if groups[0].signature != groups[1].signature || groups[0].row != "Wrong values" || groups[1].row != "" {
		t.Errorf("%+v", groups)
	}
}

func TestReport(t *testing.T) {
	r := newRun(nil, 1)
	c := &call{kind: query, command: "sinfo"}
	r.count(c, 1, 1)
	r.count(c, 0, 0)
	for signature, count := range map[string]int{"a": 1, "b": 2} {
		g := group{signature: signature}
		r.causes[g] = &cause{group: g, count: count, best: &example{call: c}}
	}
	var b strings.Builder
	r.table(&b)
	if !strings.Contains(b.String(), "| sinfo | 2 | 1 | 1 | 0 |") {
		t.Error(b.String())
	}
	if s := r.sorted(); s[0].signature != "b" {
		t.Errorf("%s comes first", s[0].signature)
	}
}

// Every accepted difference has a row on the page for users, which has at most 20.
func TestIntendedDifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/what-is-different.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Count(string(page), "\n| ") - 1 // without the header
	if rows > 20 {
		t.Errorf("the page has %d rows", rows)
	}
	for _, d := range intended {
		if !strings.Contains(string(page), "\n| "+d.row+" | ") {
			t.Errorf("the page has no row %q", d.row)
		}
	}
}

func TestLimitRow(t *testing.T) {
	e := &example{call: &call{kind: query, command: "sacct"},
		slurm: linesOf("out", " Timelimit", "365-00:00+"), berth: linesOf("out", " Timelimit", " UNLIMITED")}
	if got := limitRow(e); got != "Planned starts" {
		t.Errorf("%q", got)
	}
	e.berth[1].text = "1-00:00:00"
	if got := limitRow(e); got != "" {
		t.Errorf("%q", got)
	}
}

func TestRowsOfAccounting(t *testing.T) {
	c := &call{kind: query, command: "sacctmgr", parts: []part{{words: []string{"-s", "show", "user"}}}}
	e := &example{call: c, slurm: linesOf("out", "b", "a"), berth: linesOf("out", "a", "b")}
	if got := orderRow(e); got != "Accounts and users" {
		t.Errorf("another order: %q", got)
	}
	e.berth[1].text = "c"
	if got := orderRow(e); got != "" {
		t.Errorf("another user: %q", got)
	}
	e = &example{call: &call{kind: query, command: "sacct"}, slurm: linesOf("out", "cpu=1,gres/gpu=1,node=1"),
		berth: linesOf("out", "cpu=1,gres/gpu:tesla=1,gres/gpu=1,node=1")}
	if got := typedRow(e); got != "Accounts and users" {
		t.Errorf("types of GPUs: %q", got)
	}
	e.berth[0].text = "cpu=2,gres/gpu:tesla=1,gres/gpu=1,node=1"
	if got := typedRow(e); got != "" {
		t.Errorf("other CPUs: %q", got)
	}
}

func TestIntendedRow(t *testing.T) {
	for _, c := range []struct{ signature, call, row string }{
		{"err:  ≠ sbatch: warning: --profile has no effect: x", "sbatch -H --profile task", "Options without effect"},
		{"show out: NumCPUs=N ≠ NumCPUs=N", "scontrol update 'job={new}' CPUsPerTask=2", "`scontrol update` of a size"},
		{"show out: NumCPUs=N ≠ NumCPUs=N", "sbatch -H -c2", ""},
		{"show out: Comment=  ≠ ", "sbatch -H --comment ''", "Wrong values"},
		{"show out: Comment=V ≠ ", "sbatch -H --comment=abc", ""},
	} {
		if got := intendedRow(c.signature, c.call); got != c.row {
			t.Errorf("%s of %s: %q, want %q", c.signature, c.call, got, c.row)
		}
	}
}
