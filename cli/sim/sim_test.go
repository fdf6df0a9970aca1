package sim

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/stdio"
)

// tracesEnv names a directory with the published traces and schedules that some
// tests compare with; they are not part of this repository. See docs/sim.md.
const tracesEnv = "BERTH_TEST_TRACES"

func published(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(tracesEnv)
	if dir == "" {
		t.Skip(tracesEnv + " names no directory with published traces")
	}
	return filepath.Join(dir, name)
}

// simRun runs the command and returns its output.
func simRun(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return simCommand(args...)
}

func simCommand(args ...string) (string, error) {
	p := stdio.System()
	var out bytes.Buffer
	p.Out, p.Err = &out, io.Discard
	c := Commands(p)[0]
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

func simReport(t *testing.T, args ...string) report {
	t.Helper()
	out, err := simRun(t, append(args, "--format", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// EASY starts every job of KTH-SP2 when the published schedule does (predictsim, SC'15).
func TestPublishedEasyStarts(t *testing.T) {
	trace, want := published(t, "KTH-SP2-1996-2.swf.gz"), published(t, "kth.easy.user.starts.gz")
	starts := filepath.Join(t.TempDir(), "starts")
	r := simReport(t, trace, "--policy", "easy", "--starts", starts)
	if got := fmt.Sprintf("%.6f %.6f %.1f", r.MeanFlow, r.Slowdown, maxSlowdown(t, starts)); got != "15696.798181 92.576540 14805.2" {
		t.Errorf("mean flow, mean and longest slowdown are %s", got)
	}
	got, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, gunzip(t, want)) {
		t.Error("the starts are not those published")
	}
}

func maxSlowdown(t *testing.T, file string) float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	most := 0.0
	for line := range strings.Lines(string(text)) {
		var j traceJob
		r := ran{traceJob: &j}
		if _, err := fmt.Sscan(line, &j.id, &j.submit, &r.start, &r.end, &j.processors); err != nil {
			t.Fatal(err)
		}
		j.run = r.end - r.start
		most = max(most, r.slowdown())
	}
	return most
}

// The rows of RLScheduler (SC'20) for ten parts of Lublin-1.
func TestPublishedOrders(t *testing.T) {
	trace := published(t, "lublin_256.swf.gz")
	for policy, want := range map[string]string{"fcfs": "7273.77", "sjf": "277.35", "f1": "258.37"} {
		sum := 0.0
		firsts := []string{"1981", "2756", "4299", "8850", "3316", "2714", "5228", "7762", "4022", "7085"}
		for _, first := range firsts {
			sum += simReport(t, trace, "--policy", policy, "--first", first, "--count", "1024").Slowdown
		}
		if got := fmt.Sprintf("%.2f", sum/float64(len(firsts))); got != want {
			t.Errorf("%s: mean bounded slowdown %s, published %s", policy, got, want)
		}
	}
}

// What the scheduler does by default is never much worse than EASY.
func TestDefaultIsAsGoodAsEasy(t *testing.T) {
	for _, name := range []string{"KTH-SP2-1996-2.swf.gz", "lublin_256.swf.gz"} {
		trace := published(t, name)
		easy, def := simReport(t, trace, "--policy", "easy"), simReport(t, trace)
		if def.MeanWait > 1.01*easy.MeanWait {
			t.Errorf("%s: mean wait %.0f s, with EASY %.0f s", name, def.MeanWait, easy.MeanWait)
		}
	}
}

// small is a trace of 8 processors: a job that leaves half of them, one that needs
// all, one short and one long job that fit beside the first.
const small = `; MaxProcs: 8
; a comment
1 0 -1 100 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1
2 10 -1 50 8 -1 -1 8 60 -1 1 7 1 -1 1 -1 -1 -1
3 20 -1 200 4 -1 -1 4 200 -1 1 8 1 -1 1 -1 -1 -1
4 30 -1 60 4 -1 -1 4 70 -1 1 8 1 -1 1 -1 -1 -1
5 40 -1 60 9 -1 -1 9 70 -1 1 8 1 -1 1 -1 -1 -1
`

func smallFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "small.swf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPolicies(t *testing.T) {
	for policy, want := range map[string]string{
		"fcfs":         "0 100 150 150",
		"easy":         "0 100 150 30",
		"easy-sjbf":    "0 100 150 30",
		"conservative": "0 100 150 30",
		"default":      "0 100 150 30",
		"sjf":          "0 100 150 150",
	} {
		starts := filepath.Join(t.TempDir(), "starts")
		r := simReport(t, smallFile(t, small), "--policy", policy, "--starts", starts)
		text, err := os.ReadFile(starts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			got = append(got, strings.Fields(line)[2])
		}
		if strings.Join(got, " ") != want || r.Dropped != 1 || r.Jobs != 4 {
			t.Errorf("%s: starts %v, want %s; %d jobs, %d dropped", policy, got, want, r.Jobs, r.Dropped)
		}
	}
}

func TestWhatIf(t *testing.T) {
	file := smallFile(t, small)
	if r := simReport(t, file, "--processors", "16"); r.MaxWait != 80 || r.Dropped != 0 {
		t.Errorf("with 16 processors: %+v", r)
	}
	if r := simReport(t, file, "--add-nodes", "8"); r.Processors != 16 || r.MaxWait != 80 {
		t.Errorf("with 8 more: %+v", r)
	}
	if r := simReport(t, file, "--users"); len(r.Users) != 2 || *r.Users[0].User != 7 || r.Users[0].Jobs != 2 {
		t.Errorf("users: %+v", r.Users)
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := "ClusterName=x\nNodeName=n[1-4] CPUs=2 RealMemory=1000\nPartitionName=p Nodes=ALL Default=YES\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := simReport(t, file, "--machine", conf); r.Processors != 8 || r.Jobs != 4 || r.MaxWait != 130 {
		t.Errorf("on four nodes: %+v", r)
	}
	if r := simReport(t, file, "--policy", "fcfs", "--weights", "jobsize=1000,age=0"); r.Jobs != 4 {
		t.Errorf("weights: %+v", r)
	}
}

func TestPictureIsXML(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "p.svg")
	simReport(t, smallFile(t, small), "--picture", svg)
	text, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	boxes := 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			boxes++
		}
	}
	if boxes != 1+4 {
		t.Errorf("%d boxes, want the machine and four jobs", boxes)
	}
}

func TestBadInput(t *testing.T) {
	file := smallFile(t, small)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{smallFile(t, small+"6 50 x\n")}, ":8: field 3, \"x\", is not a number"},
		{[]string{smallFile(t, small+"6 50 1\n")}, ":8: a job must have 18 fields, this one has 3"},
		{[]string{smallFile(t, "1 0 -1 100 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1 9\n")}, ":1: a job must have 18 fields"},
		{[]string{smallFile(t, "1 0 -1 NaN 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1\n")}, ":1: field 4"},
		{[]string{smallFile(t, "1 0 -1 100 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1\n")}, "number of processors"},
		{[]string{file, "--policy", "best"}, `unknown policy "best"`},
		{[]string{file, "--estimates", "x"}, "user or actual"},
		{[]string{file, "--format", "x"}, "text, json or csv"},
		{[]string{file, "--weights", "age=0,jobsize=0"}, "are zero"},
		{[]string{file, "--weights", "size=1"}, `unknown factor "size"`},
		{[]string{file, "--weights", "age"}, `invalid weight "age"`},
		{[]string{file, "--weights", "age=-1"}, `invalid weight "age=-1", expected FACTOR=N with N from 0 to 4294967294`},
		{[]string{file, "--weights", "age=4294967295"}, "invalid weight"},
		{[]string{file, "--weights", "age=1,"}, `invalid weight ""`},
		{[]string{file, "--weights", "age=1,age=2"}, "duplicate weight: age is 1 and 2"},
		{[]string{file, "--weights", "qos=5,partition=1"}, "have no effect"},
		{[]string{file, "--weights", "age=4294967294,qos=1"}, "exceeds 4294967294"},
		{[]string{file, "--policy", "sjf", "--weights", "age=1"}, "--policy sjf and --weights are mutually exclusive"},
		{[]string{file, "--processors", "-1"}, "must not be negative"},
		{[]string{file + "x"}, "no such file"},
	} {
		if out, err := simRun(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%q: got %q and error %v, want %q", c.args, out, err, c.want)
		}
	}
}

// treeMachine writes a slurm.conf with eight nodes and a topology.conf with two leaves, and
// returns the path of slurm.conf.
func treeMachine(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf":    "TopologyPlugin=topology/tree\nNodeName=n[1-8] CPUs=1\n",
		"topology.conf": "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=t Switches=a,b\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "slurm.conf")
}

// A job of three nodes, then one of four: the first free nodes are below two switches, the
// fewest switches are one for each job.
func TestSwitches(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.swf")
	text := "; MaxProcs: 8\n" +
		"1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 -1 1 -1 -1 -1\n2 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1\n"
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	machine := treeMachine(t)
	near := simReport(t, trace, "--machine", machine).Network
	first := simReport(t, trace, "--machine", machine, "--first-fit").Network
	if near == nil || first == nil {
		t.Fatal("no statistics of the network")
	}
	if *near != (switchFigures{1, 1}) || *first != (switchFigures{1.5, 1}) {
		t.Errorf("%+v, first fit %+v", *near, *first)
	}
	out, err := simRun(t, trace, "--machine", machine)
	if err != nil || !strings.Contains(out, "mean_switches             1.00\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if r := simReport(t, trace); r.Network != nil {
		t.Errorf("a pool of processors has a network: %+v", r.Network)
	}
}
