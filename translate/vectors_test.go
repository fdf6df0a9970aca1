package translate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// vector is one call of sbatch 22.05.8 and its result (testdata/record).
type vector struct {
	Name   string
	Args   []string
	Env    []string
	Script string
	Exit   int
	Stdout string
	Stderr string
	Job    map[string]string
	// Components are the further components of a heterogeneous job.
	Components []map[string]string
}

// readLines decodes a file with one JSON value per line.
func readLines[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// differences are vectors with an intentionally different result, and the reason.
var differences = map[string]string{
	"site #!/bin/bash\n#SBATCH --cluster-constraint=big -M here\ntrue\n": "the command resolves clusters after the translation",
	"site #!/bin/bash\n#SBATCH --uid=nosuchuser --gid=root\ntrue\n":      "the command resolves users after the translation",
	"site #!/bin/bash\n#SBATCH --job-name= --output=\ntrue\n":            "the job would fail, as its output would be a directory; here an empty name means the default",
	"site #!/bin/bash\n#PBS -N other\n#BSUB -n 4\n#SBATCH -n 2\ntrue\n":  "Slurm translates some lines of other systems; here a warning says that they are ignored",
	"time --time=-5": "Slurm accepts it and shows INVALID; here it is no limit",
	"script #!/bin/sh\n#SBATCH -- -n 2\ntrue\n":                       "Slurm exits with 1 after an error about the parameter ?",
	"script #!/bin/sh\n#SBATCH -B0:1\ntrue\n":                         "a job of Slurm has no tasks then; here 0 is as if it were not given",
	"script #!/bin/sh\n#SBATCH -B1:0\ntrue\n":                         "a job of Slurm has no tasks then; here 0 is as if it were not given",
	"site #!/bin/bash\n#SBATCH -–nodes=2\ntrue\n":                     "the byte in the message is escaped",
	"shape -O -N 2-3 -n 9":                                            "the number of nodes comes from Slurm's scheduler",
	"shape --tres-per-task=cpu=2":                                     "later releases than 22.05 have it",
	"het  #SBATCH -x n1 -w n2 -C fast\n#SBATCH hetjob\n#SBATCH -n2\n": "Slurm's controller excludes the first component's nodes too",
}

func TestVectors(t *testing.T) {
	vectors := readLines[vector](t, "testdata/sbatch.jsonl")
	if len(vectors) < 440 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			if why := differences[v.Name]; why != "" {
				t.Skip(why)
			}
			replay(t, v)
		})
	}
}

func replay(t *testing.T, v vector) {
	now, err := time.Parse("2006-01-02T15:04:05", v.Job["SubmitTime"])
	if err != nil {
		now = time.Unix(1800000000, 0).UTC()
	}
	in := Input{
		Args: v.Args, Env: v.Env, Script: []byte(v.Script), ScriptName: "s.sh", ScriptPath: "/tmp/vectors/s.sh",
		Dir: "/tmp/vectors", Hostname: "login", Now: now, Umask: -1,
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	}
	if strings.Contains(strings.Join(v.Args, " "), "--wrap") {
		in.Script, in.ScriptName, in.ScriptPath = nil, "", ""
	}
	s, err := sbatch(in, true)
	if v.Exit != 0 {
		compareRefusal(t, v, err)
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if v.Job == nil { // --test-only
		return
	}
	same(t, "", shown(&s.Job, now), v.Job)
	if len(s.Components) != len(v.Components) {
		t.Fatalf("%d further components, want %d", len(s.Components), len(v.Components))
	}
	for i := range s.Components {
		got := shown(&s.Components[i], now)
		delete(got, "StdOut")
		delete(got, "StdErr")
		same(t, fmt.Sprintf("component %d: ", i+1), got, v.Components[i])
	}
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for key := range got {
		if got[key] != want[key] {
			t.Errorf("%s%s=%s, want %s", what, key, got[key], want[key])
		}
	}
}

// compareRefusal compares text and exit code. Calls that Slurm's controller refuses
// may be accepted here; they are tested with admission.
func compareRefusal(t *testing.T, v vector, err error) {
	if err == nil {
		if !strings.Contains(v.Stderr, "Batch job submission failed: ") && !strings.Contains(v.Stderr, "(gres)") {
			t.Fatalf("accepted; want %s", v.Stderr)
		}
		return
	}
	var e *slurmerr.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not a *slurmerr.Error", err)
	}
	e.Hints = nil
	var b strings.Builder
	slurmerr.Print(&b, "sbatch", err)
	if text := strings.ToValidUTF8(b.String(), "\ufffd"); text != b.String() { // the recording is JSON
		b.Reset()
		b.WriteString(text)
	}
	want := v.Stderr
	if i := strings.Index(want, "; possibilities:"); i >= 0 { // our table has more names
		want = want[:i]
		b.Reset()
		b.WriteString(err.Error()[:strings.Index(err.Error(), "; possibilities:")])
		want = strings.TrimPrefix(want, "sbatch: ")
	}
	if b.String() != want || slurmerr.ExitCode(err) != v.Exit {
		t.Errorf("exit %d:\n%swant %d:\n%s", slurmerr.ExitCode(err), b.String(), v.Exit, want)
	}
}

// shown returns the fields of scontrol show job that depend on the call.
func shown(j *job.Job, now time.Time) map[string]string {
	out := map[string]string{"JobName": j.Name, "Nice": fmt.Sprint(j.Nice), "WorkDir": j.Batch.WorkDir}
	if n := nodes(j.Shape); n != "0" {
		out["NumNodes"] = n
	}
	const id = 987654321
	place := env.PatternValues{JobID: id, JobName: j.Name, User: "root", Batch: true}
	stdout := place.Shown(j.Batch.WorkDir, cmp.Or(j.Batch.Output, env.DefaultOutput))
	stderr := place.Shown(j.Batch.WorkDir, cmp.Or(j.Batch.Error, j.Batch.Output, env.DefaultOutput))
	if j.Array == nil {
		out["StdOut"] = strings.ReplaceAll(stdout, fmt.Sprint(id), "N")
		out["StdErr"] = strings.ReplaceAll(stderr, fmt.Sprint(id), "N")
	}
	if j.Batch.Input != "" {
		out["StdIn"] = place.Shown(j.Batch.WorkDir, j.Batch.Input)
	}
	if j.Comment != "" {
		out["Comment"] = j.Comment
	}
	if len(j.Partitions) > 0 {
		out["Partition"] = strings.Join(j.Partitions, ",")
	}
	if j.Time.Limit != 0 && len(j.Partitions) == 0 {
		out["TimeLimit"] = limit(j.Time.Limit)
	}
	if m := j.Shape.MemPerNode; m != nil {
		out["MinMemoryNode"] = megabytes(*m)
	}
	if m := j.Shape.MemPerCPU; m != nil {
		out["MinMemoryCPU"] = megabytes(*m)
	}
	if n := j.Shape.Tasks; n > 0 {
		out["NumTasks"] = fmt.Sprint(n)
	}
	if n := j.Shape.CPUsPerTask; n > 0 {
		out["CPUs/Task"] = fmt.Sprint(n)
	}
	if l := j.Placement.NodeList; l != nil {
		out["ReqNodeList"] = hostlist.Fold(l)
	}
	if l := j.Placement.Exclude; l != nil {
		out["ExcNodeList"] = hostlist.Fold(l)
	}
	if j.Placement.Constraint != "" {
		out["Features"] = j.Placement.Constraint
	}
	switch {
	case j.Placement.Exclusive == "mcs": // accepted only if lenient
		out["OverSubscribe"] = "MCS"
	case j.Placement.Exclusive == "user":
		out["OverSubscribe"] = "USER"
	case j.Placement.Exclusive != "":
		out["OverSubscribe"] = "NO"
	case j.Placement.OverSubscribe:
		out["OverSubscribe"] = "YES"
	}
	if j.Batch.Requeue != nil {
		out["Requeue"] = map[bool]string{false: "0", true: "1"}[*j.Batch.Requeue]
	}
	if j.Array != nil {
		out["ArrayTaskId"] = j.Array.Spec
	}
	if len(j.Dependencies.Items) > 0 {
		sep := ","
		if j.Dependencies.Any {
			sep = "?"
		}
		list := value.FormatDependencies(j.Dependencies)
		out["Dependency"] = strings.ReplaceAll(list, sep, "(unfulfilled)"+sep) + "(unfulfilled)"
	}
	if j.Time.Begin > now.Unix() {
		out["EligibleTime"] = time.Unix(j.Time.Begin, 0).UTC().Format("2006-01-02T15:04:05")
	}
	return out
}

func nodes(s job.Shape) string {
	if s.MaxNodes == 0 {
		return fmt.Sprint(s.MinNodes)
	}
	return fmt.Sprintf("%d-%d", s.MinNodes, s.MaxNodes)
}

func limit(minutes int32) string {
	if minutes == job.Unlimited {
		return "UNLIMITED"
	}
	d, h, m := minutes/1440, minutes/60%24, minutes%60
	if d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:00", d, h, m)
	}
	return fmt.Sprintf("%02d:%02d:00", h, m)
}

func megabytes(n int64) string {
	switch {
	case n == 0:
		return "0"
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dT", n>>20)
	case n%1024 == 0:
		return fmt.Sprintf("%dG", n>>10)
	}
	return fmt.Sprintf("%dM", n)
}
