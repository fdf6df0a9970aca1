package format

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format/testdata/shape"
	"github.com/berth-hpc/berth/translate/status"
)

// unlike are the members whose kinds differ, and why.
var unlike = map[string]string{
	".jobs[].reservation.name":          "22.05 has a number that means nothing; here it is the name",
	".jobs[].cpu_frequency_minumum":     "a word of 22.05 for a frequency that was asked for, which no job can here", //nolint:misspell // as 22.05 spells it
	".jobs[].tres.allocated[].count":    "null is energy's, which nothing measures",
	".jobs[].profile[]":                 "of jobs with --profile alone",
	".nodes[].state_flags[]":            "of some nodes alone",
	".nodes[].owner":                    "of some nodes alone",
	".jobs[].gres_detail[]":             "of jobs with GRES alone",
	".jobs[].steps[].CPU.governor[]":    "of steps that srun made alone",
	".jobs[].steps[].kill_request_user": "null until somebody cancels a step",
}

// shapeOf is the shape of documents.
func shapeOf(t *testing.T, docs ...[]byte) shape.Shape {
	t.Helper()
	s := shape.Shape{}
	for _, text := range docs {
		var v any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		s.Add("", v)
	}
	return s
}

// sampleJobs are the recorded jobs, and one of every sort that has members of
// its own.
func sampleJobs(t *testing.T) []*status.Job {
	rows := readListing(t).rows()
	rows = append(rows, status.Job{ID: 12, State: "RUNNING", TimeLimit: -1, Nodes: 2, CPUs: 4, NodeList: "n[1-2]", Layout: "n1 0-1 100 gpu:2(IDX:0-1);n2 0,2 100 ",
		TRES: "cpu=4,node=2", Profile: "Task", MailType: "END", OverSubscribe: "USER", CoresPerSocket: 2, SocketsPerNode: 1, ThreadsPerCore: 1, TasksPerCore: 1, TasksPerSocket: 2, Nice: 3})
	var list []*status.Job
	for i := range rows {
		list = append(list, &rows[i])
	}
	return list
}

func sampleRecords() []status.Record {
	used := status.StepRecord{Step: "0", Name: "a", State: "COMPLETED", Start: 5, End: 9, NodeList: "n1", Nodes: 1, Tasks: 1, Measured: true, MaxRSS: 5, AveRSS: 5, MaxRSSNode: "n1", KilledBy: "ben"}
	list := []status.Record{
		{ID: 1, State: "PENDING", Submit: 1, ArrayJobID: 1, ArrayTaskID: "1-3%2", ReqTRES: "cpu=1,gres/gpu=1,mem=100M"},
		{ID: 2, State: "RUNNING", Submit: 1, Start: 2, TimeLimit: -1, NodeList: "n1", AllocTRES: "cpu=1,gres/gpu=1,mem=100M", ArrayJobID: 2, ArrayTaskID: "4",
			Steps: []status.StepRecord{{Step: "batch", State: "RUNNING", Start: 2, AllocTRES: "cpu=1,gres/gpu=1,mem=100M", NodeList: "n1"}}},
		{ID: 3, State: "FAILED", Submit: 1, Start: 2, End: 9, TimeLimit: 5, ExitCode: 3, Derived: 3, HetJobID: 3, HetOffset: 1, KilledBy: "root",
			Steps: []status.StepRecord{used, {Step: "batch", State: "FAILED", Start: 2, End: 9, ExitCode: 3}, {Step: "1", State: "FAILED", Start: 2, End: 9, Signal: 9}}},
		{ID: 4, State: "FAILED", Submit: 1, Start: 2, End: 9, Signal: 9, DerivedSignal: 9, Comment: "x"},
		{ID: 5, State: "CANCELLED", Submit: 1, End: 9},
	}
	for i := range list {
		list[i].QOS = "normal"
	}
	return list
}

// sampleDocument is what a command prints in the form that f asks for.
func sampleDocument(t *testing.T, command string, f dump.Form) []byte {
	t.Helper()
	switch command {
	case "squeue":
		return dump.Jobs(f, sampleJobs(t))
	case "sinfo":
		nodes := readListing(t).nodeRows()
		nodes[0].Owner, nodes[0].Flags, nodes[1].Reason, nodes[1].ReasonBy = "ben", []string{"DRAIN"}, "hot", "root"
		return dump.Sinfo(f, recordedPartitions, nodes)
	}
	out, err := json.Marshal(AcctDocument(sampleRecords(), &AcctSettings{}, &f))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDocumentsHaveSlurmsShape: every member that Slurm's documents have, none
// besides, and of the same kinds all the way down.
func TestDocumentsHaveSlurmsShape(t *testing.T) {
	for _, command := range []string{"squeue", "sinfo", "sacct"} {
		for version, parser := range map[string]string{"22.05.8": "", "v0.0.40": "v0.0.40"} {
			data, err := os.ReadFile("testdata/shape/" + command + "-" + version + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			want := shape.Parse(string(data))
			f := dump.Form{Parser: parser, Slurm: "22.05.8", Cluster: "ref", Command: []string{command}, User: "ben", Now: 9}
			got := shapeOf(t, sampleDocument(t, command, f))
			for path, kinds := range got {
				for _, kind := range kinds {
					if !slices.Contains(want[path], kind) && unlike[path] == "" {
						t.Errorf("%s %s: %s is %s, in Slurm %q", command, version, path, kind, want[path])
					}
				}
			}
			for path := range want {
				if got[path] == nil && unlike[path] == "" {
					t.Errorf("%s %s: %s is missing", command, version, path)
				}
			}
		}
	}
}

// TestRecordedJobsReadTheSame: the values that squeue --json told of the
// recorded jobs.
func TestRecordedJobsReadTheSame(t *testing.T) {
	differs := map[string]string{
		"association_id": "associations have names here",
		"cpus_per_task":  "22.05 leaves it out of most jobs",
		"flags":          "who asked for memory is not in a row",
		"job_resources":  "of rows with a layout, which the recording has not",
	}
	l := readListing(t)
	rows := l.rows()
	for i := range rows {
		var doc struct{ Jobs []map[string]any }
		if err := json.Unmarshal(dump.Jobs(dump.Form{Slurm: "22.05.8", Cluster: "ref"}, []*status.Job{&rows[i]}), &doc); err != nil {
			t.Fatal(err)
		}
		for key, want := range l.Jobs[i] {
			if got := doc.Jobs[0][key]; differs[key] == "" && !equalJSON(got, want) {
				t.Errorf("job %v: %s is %#v, in Slurm %#v", l.Jobs[i]["job_id"], key, got, want)
			}
		}
	}
}

func equalJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// TestAcctYAMLIsTheSameDocument as that of --json.
func TestAcctYAMLIsTheSameDocument(t *testing.T) {
	for _, parser := range []string{"", "v0.0.40"} {
		doc := AcctDocument(sampleRecords(), &AcctSettings{Settings: Settings{Location: time.UTC}}, &dump.Form{Parser: parser, Command: []string{"sacct"}})
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		other, err := AppendYAML(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(other, &b); err != nil {
			t.Fatalf("%v in\n%s", err, other)
		}
		if !equalJSON(a, b) {
			t.Errorf("%q: the documents differ:\n%s", parser, other)
		}
	}
}

func TestTaskBits(t *testing.T) {
	for spec, want := range map[string]string{"1-9": "0x3FE", "0": "0x1", "0-3": "0xF", "100": "0x10000000000000000000000000"} {
		if got := taskBits(spec); got != want {
			t.Errorf("%s is %s, want %s", spec, got, want)
		}
	}
}
