package tui

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

func stripANSI(s string) string { return ansi.Strip(s) }

// site returns a cluster with a small queue that has a job of each kind.
func site() *cluster {
	run := func(id int64, user, name, nodes string, n int32, started, limit int64) status.Job {
		return status.Job{
			ID:        id,
			Name:      name,
			User:      user,
			UID:       1000,
			Account:   "lab",
			QOS:       "normal",
			Partition: "main",
			State:     "RUNNING",
			Reason:    "None",
			Priority:  1000,
			Submit:    now - started - 60,
			Start:     now - started,
			End:       now - started + limit*60,
			TimeLimit: int32(limit),
			Nodes:     n,
			CPUs:      4 * n,
			Tasks:     n,
			NodeList:  nodes,
			TRES:      fmt.Sprintf("cpu=%d,mem=8G,node=%d,billing=4", 4*n, n),
			WorkDir:   "/home/" + user,
			MinMemory: 8192,
		}
	}
	wait := func(id int64, user, name, reason string, n int32, start int64) status.Job {
		return status.Job{
			ID:        id,
			Name:      name,
			User:      user,
			UID:       1000,
			Partition: "main",
			State:     "PENDING",
			Reason:    reason,
			Priority:  1000 - id,
			Submit:    now - 3600,
			Start:     start,
			TimeLimit: 120,
			Nodes:     n,
			CPUs:      4 * n,
			Tasks:     n,
			TRES:      fmt.Sprintf("cpu=%d,mem=8G,node=%d", 4*n, n),
			MinMemory: 8192,
		}
	}
	gpu := run(102, "bob", "train-large-language-model", "n[3-4]", 2, 7200, 240)
	gpu.TRES += ",gres/gpu=8"
	next := wait(110, "alice", "solve", "Resources", 2, now+2*3600)
	next.PlannedNodes = "n[3-4]"
	array := wait(120, "carol", "sweep", "Priority", 1, 0)
	array.ArrayJobID, array.ArrayTaskID = 120, "3-999%2"
	task := func(id int64, index string) status.Job {
		t := run(id, "carol", "sweep", "n1", 1, 300, 60)
		t.ArrayJobID, t.ArrayTaskID = 120, index
		return t
	}
	dep := wait(130, "alice", "post", "Dependency", 1, 0)
	dep.Dependency = "afterok:110(unfulfilled)"
	held := wait(131, "alice", "later", "JobHeldUser", 1, 0)
	c := newCluster(
		run(101, "alice", "cfd", "n1", 1, 3723, 240),
		gpu,
		run(103, "alice", "cfd", "n2", 1, 60, 60),
		next,
		array,
		task(121, "1"),
		task(122, "2"),
		dep,
		held,
	)
	for i := range 5 {
		n := status.Node{
			Name:       fmt.Sprint("n", i+1),
			Partitions: []string{"main"},
			State:      "MIXED",
			CPUs:       16,
			CPUsAlloc:  int32(4 * (i % 4)),
			Memory:     64 << 10,
			MemAlloc:   int64(8 << 10 * (i % 4)),
		}
		if i == 2 || i == 3 {
			n.State, n.CPUsAlloc, n.GRES, n.GRESUsed = "ALLOCATED", 16, "gpu:a100:4", "gpu:a100:4(IDX:0-3)"
		}
		if i == 4 {
			n.State, n.Flags, n.Reason, n.CPUsAlloc = "IDLE", []string{"DRAIN"}, "bad disk", 0
		}
		c.nodes = append(c.nodes, n)
	}
	c.records = []status.Record{
		{
			ID:        90,
			Name:      "old",
			User:      "alice",
			State:     "COMPLETED",
			Partition: "main",
			Submit:    now - 9000,
			Start:     now - 8000,
			End:       now - 4000,
			Nodes:     1,
			CPUs:      4,
			NodeList:  "n1",
		},
		{
			ID:        91,
			Name:      "older",
			User:      "alice",
			State:     "FAILED",
			ExitCode:  2,
			Partition: "main",
			Submit:    now - 9000,
			Start:     now - 8000,
			End:       now - 7000,
			Nodes:     2,
			CPUs:      8,
			NodeList:  "n[1-2]",
		},
	}
	return c
}

var sizes = [][2]int{{20, 4}, {40, 12}, {80, 24}, {132, 43}, {200, 60}}

// compareGolden compares text with testdata/NAME.golden.
func compareGolden(t *testing.T, text string) {
	t.Helper()
	golden.RequireEqual(t, []byte(text))
}

func TestScreens(t *testing.T) {
	pages := []struct{ name, keys, see string }{
		{
			"queue",
			"",
			"110",
		},
		{"nodes", "2", "n1"},
		{"history", "3", "90"},
		{"job", "/solve<enter>4", "110"},
		{"timeline", "7", "102"},
		{"help", "?", "the queue"},
	}
	for _, size := range sizes {
		for _, p := range pages {
			t.Run(fmt.Sprintf("%s-%dx%d", p.name, size[0], size[1]), func(t *testing.T) {
				d := start(t, site(), process(nil, nil), jobs.Screen{}, size[0], size[1])
				d.see("110")
				d.keys(p.keys)
				d.see(p.see)
				if p.name == "job" {
					d.keys("<home>")
					d.until("the explanation is shown", func() bool {
						return !strings.Contains(d.screen(), "Reading the queue") && strings.Contains(d.screen(), "It is")
					})
				}
				compareGolden(t, d.screen())
			})
		}
	}
}

func TestLooks(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no-color": {"LANG": "C.UTF-8", "NO_COLOR": "1"}, "lang-c": {"LANG": "C"}, "dumb": {"LANG": "C.UTF-8", "TERM": "dumb"},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, site(), process(env, nil), jobs.Screen{}, 80, 24)
			d.see("101")
			d.keys("<space>")
			if s := d.screen(); name != "no-color" && !isASCII(s) {
				t.Errorf("not ASCII:\n%s", s)
			}
			compareGolden(t, d.screen())
		})
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 126 }) < 0
}

func TestFilterFollowsKeys(t *testing.T) {
	d := start(t, site(), process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("/user:ali")
	d.see("/user:ali")
	d.see("None of")
	d.keys("ce")
	d.see("103")
	if strings.Contains(d.screen(), "bob") {
		t.Error(d.screen())
	}
	d.keys(" st:R<enter>")
	d.see("2 of 9 jobs /user:alice st:R")
	d.keys("/ gpu>=x<enter>")
	d.see(`! gpu: "x" is not a number`)
	d.see("2 of 9 jobs /user:alice st:R") // the last valid filter stays
	d.keys("<ctrl+l>")
	d.see("9 jobs")
	d.keys("/")
	d.keys("<up>")
	d.see("/user:alice st:R gpu>=x")
	d.keys("<esc>")
}

func TestMarksFollowJobs(t *testing.T) {
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("/cfd<enter><ctrl+a>")
	d.see("[2 marked]")
	c.Drop(101)
	d.see("[1 marked]")
	j := c.jobs[103]
	j.State = "COMPLETING"
	c.Put(j)
	d.see("CG")
	d.see("[1 marked]")
	d.keys("x")
	d.see("Cancel 1 job?")
	d.see("jobs:   103")
	d.keys("n")
	d.see("Nothing was done")
	if ops := c.operations(); len(ops) != 0 {
		t.Fatal(ops)
	}
	d.keys("xy")
	d.see("1 job cancelled.")
	if ops := c.operations(); len(ops) != 1 || ops[0].Verb != status.OpCancel || fmt.Sprint(ops[0].Jobs) != "[103]" {
		t.Fatalf("%+v", ops)
	}
}

func TestOthersJobsNeedTheNumber(t *testing.T) {
	c := site()
	c.refuse = func(_ status.Operation, job string) string {
		if job == "102" {
			return "Access/permission denied"
		}
		return ""
	}
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("/st:R<enter><ctrl+a>h")
	d.see("Hold 1002 jobs?") // the array counts with all its tasks
	d.see("of:     carol 999, alice 2, bob 1")
	d.keys("y<enter>")
	d.see("That is a different number")
	d.keys("1002<enter>")
	d.see("102              Access/permission denied")
	d.see("101              held")
	d.keys("<esc>U")
	d.until("the undo operation is sent", func() bool { return len(c.operations()) == 2 })
	undone := c.operations()[1]
	slices.Sort(undone.Jobs)
	if undone.Verb != status.OpRelease || !slices.Equal(undone.Jobs, []string{"101", "103", "120"}) {
		t.Fatalf("%+v", undone)
	}
}

func TestReadOnly(t *testing.T) {
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{ReadOnly: true}, 100, 24)
	d.see("101")
	for _, k := range []string{"x", "h", "H", "Q", "z", "Z", "e", "U", "!"} {
		d.keys(k)
		d.see("read-only: nothing is changed")
		d.keys("<down>")
	}
	if ops := c.operations(); len(ops) != 0 {
		t.Fatal(ops)
	}
}

func TestArraysFold(t *testing.T) {
	d := start(t, site(), process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("▸120 999 tasks")
	d.see("PD 997  R 2")
	d.keys("/sweep<enter><tab>")
	d.see("120_[3-999%2]")
	d.see("120_1")
	d.keys("<tab>")
	d.disappears("120_1")
	flat := start(t, site(), process(nil, nil), jobs.Screen{Flat: true}, 100, 24)
	flat.see("120_1")
}

func TestLostAndBack(t *testing.T) {
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("/103<enter><space>")
	c.Break(errors.New("Berth's scheduler does not answer"))
	d.see("! Berth's scheduler does not answer; trying again")
	d.see("[not up to date]")
	d.see("103") // rows and marks stay
	d.see("[1 marked]")
	c.Break(nil)
	d.see("The queue answers again.")
	d.see("[1 marked]")
	d.disappears("[not up to date]")
}

func TestHostileText(t *testing.T) {
	c := site()
	bad := c.jobs[101]
	bad.Name, bad.User, bad.Reason, bad.WorkDir = "\x1b]0;gotcha\a\x1b[2J\u202e\r\nx", "\x9b31mred", "\u0000", "/a\nb"
	c.Put(bad)
	d := start(t, c, process(nil, nil), jobs.Screen{}, 132, 43)
	d.see(`\x1b]0;gotcha`)
	for _, keys := range []string{"", "/101<enter>4", "K", "<esc>5", "7"} {
		d.keys(keys)
		lines, _ := d.m.render()
		for _, l := range lines {
			plain := ansi.Strip(l)
			if strings.ContainsAny(plain, "\x1b\a\r\n\x00\u202e\u009b") || strings.Contains(l, "gotcha\a") {
				t.Errorf("after %q: %q", keys, l)
			}
		}
	}
}

func TestBell(t *testing.T) {
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys("/103<enter>b")
	d.see("The bell rings when the job ends.")
	c.Drop(103)
	d.see("Over: 103")
	d.until("the bell rings", func() bool { return len(d.raw) == 1 && d.raw[0] == "\a" })
}

func TestCommandsAndBack(t *testing.T) {
	d := start(t, site(), process(nil, nil), jobs.Screen{}, 100, 24)
	d.see("101")
	d.keys(":job 110<enter>")
	d.see("Why it waits")
	d.keys(":nodes n[1-2]<enter>")
	d.see("nodes  2")
	d.keys("q")
	d.see("solve of alice")
	d.keys("<esc>")
	d.see("9 jobs")
	d.keys(":nonsense<enter>")
	d.see("! there is no command :nonsense")
	d.keys(":sort -i<enter>")
	d.see("JOBID▼")
	d.keys(":columns JobArrayID,Account,QOS<enter>")
	d.see("ACCOUNT")
	d.keys(":columns nonsense<enter>")
	d.see("! no column is called nonsense")
	d.keys(":theme nonsense<enter>")
	d.see("! no theme is called")
	d.keys(":job ../../etc<enter>")
	d.see("! invalid job id")
	d.keys(":q<enter>")
	d.until("the program quits", func() bool { return d.quit })
}

func TestOutputIsFollowed(t *testing.T) {
	c := site()
	file := temp(t, "first\nprogress 1%\rprogress 2%\n\x1b[31mred\x1b[m\tx\n")
	j := c.jobs[101]
	j.StdOut = file
	c.Put(j)
	d := start(t, c, process(nil, nil), jobs.Screen{}, 100, 12)
	d.see("101")
	d.keys("/101<enter>o")
	d.see("red     x")
	if s := d.screen(); strings.Contains(s, "progress 1%") || !strings.Contains(s, "progress 2%") {
		t.Error(s)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 100 {
		fmt.Fprintf(f, "line %d\n", i)
	}
	d.see("line 99")
	d.keys("<up>")
	d.see("[line 93 of")
	d.keys("/line 7$<enter>")
	d.see("line 7\n")
	d.keys("G")
	d.see("[following]")
	if err := os.WriteFile(file, []byte("anew\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.see("anew")
	d.disappears("line 99")
}

func TestBrokenConfigurationIsReported(t *testing.T) {
	home := map[string]string{"LANG": "C.UTF-8", "HOME": "/home/alice"}
	const config, state = "/home/alice/.config/berth/tui.yaml", "/home/alice/.local/state/berth/tui.json"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"yaml":   {map[string]string{config: "theme: [\n"}, "tui.yaml"},
		"field":  {map[string]string{config: "colour: red\n"}, "colour"},
		"theme":  {map[string]string{config: "theme: none\n"}, `no theme is called "none"`},
		"style":  {map[string]string{config: "theme: own\nthemes: {own: {nothing: '1'}}\n"}, `there is no style "nothing"`},
		"colour": {map[string]string{config: "theme: own\nthemes: {own: {bad: 'reddish'}}\n"}, "is not a colour"},
		"key":    {map[string]string{config: "keys: {fly: [x]}\n"}, `there is no action "fly"`},
		"twice":  {map[string]string{config: "keys: {cancel: [d], hold: [d]}\n"}, `"d" is given to`},
		"noquit": {map[string]string{config: "keys: {quit: []}\n"}, "no key is left for quit"},
		"filter": {map[string]string{config: "filters: {gpu: 'gpu>=x'}\n"}, "is not a number"},
		"state":  {map[string]string{state: "{"}, "tui.json"},
		"both":   {map[string]string{config: "theme: none\n", state: "{"}, `tui.json: unexpected end of JSON input; no theme is called "none"`},
		"column": {map[string]string{state: `{"queue":{"columns":["Nothing"]}}`}, "no column is called Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, site(), process(home, c.files), jobs.Screen{}, 300, 24)
			d.see("! ")
			d.see(c.want)
			d.see("101") // the program works nevertheless
			d.keys("<down><down>")
			d.disappears(c.want)
		})
	}
}

func TestPastedGarbage(t *testing.T) {
	d := start(t, site(), process(nil, nil), jobs.Screen{}, 80, 24)
	d.see("101")
	before := d.m.queue.Current()
	d.send(pasted("xyxyxy\x1b[A\nq"))
	d.see("pasted characters were ignored")
	if d.quit || d.m.queue.Current() != before {
		t.Error("pasted text had an effect")
	}
	d.keys("/")
	d.send(pasted(strings.Repeat("\x00garbage(\n", 10_000)))
	d.keys("<enter>")
	d.see("None of 9 jobs")
	d.keys("<ctrl+l>")
	d.see("101")
}
