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

// unlike are the members whose types differ, and the reason.
var unlike = map[string]string{
	".jobs[].reservation.name":          "22.05 has a number without meaning; here it is the name",
	".jobs[].cpu_frequency_minumum":     "22.05 has a word for a requested frequency, which is not supported here", //nolint:misspell // as 22.05 spells it
	".jobs[].tres.allocated[].count":    "null for energy, which is not measured",
	".jobs[].profile[]":                 "only of jobs with --profile",
	".nodes[].state_flags[]":            "only of some nodes",
	".nodes[].owner":                    "only of some nodes",
	".jobs[].gres_detail[]":             "only of jobs with GRES",
	".jobs[].steps[].CPU.governor[]":    "only of steps of srun",
	".jobs[].steps[].kill_request_user": "null until a step is cancelled",
}

// shapeOf returns the shape of documents.
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

// sampleJobs returns the recorded jobs and one with the members that they do not
// have.
func sampleJobs(t *testing.T) []*status.Job {
	rows := readListing(t).rows()
	rows = append(
		rows,
		status.Job{
			ID:             12,
			State:          "RUNNING",
			TimeLimit:      -1,
			Nodes:          2,
			CPUs:           4,
			NodeList:       "n[1-2]",
			Layout:         "n1 0-1 100 gpu:2(IDX:0-1);n2 0,2 100 ",
			TRES:           "cpu=4,node=2",
			Profile:        "Task",
			MailType:       "END",
			OverSubscribe:  "USER",
			CoresPerSocket: 2,
			SocketsPerNode: 1,
			ThreadsPerCore: 1,
			TasksPerCore:   1,
			TasksPerSocket: 2,
			Nice:           3,
		},
	)
	var list []*status.Job
	for i := range rows {
		list = append(list, &rows[i])
	}
	return list
}

func sampleRecords() []status.Record {
	used := status.StepRecord{
		Step:     "0",
		Name:     "a",
		State:    "COMPLETED",
		Start:    5,
		End:      9,
		NodeList: "n1",
		Nodes:    1,
		Tasks:    1,
		Measured: true,
		RSS:      status.Measure{Total: 5, Max: status.Extreme{Amount: 5}, Min: status.Extreme{Amount: 5}},
		KilledBy: "ben",
	}
	list := []status.Record{
		{ID: 1, State: "PENDING", Submit: 1, ArrayJobID: 1, ArrayTaskID: "1-3%2", ReqTRES: "cpu=1,gres/gpu=1,mem=100M"},
		{
			ID:          2,
			State:       "RUNNING",
			Submit:      1,
			Start:       2,
			TimeLimit:   -1,
			NodeList:    "n1",
			AllocTRES:   "cpu=1,gres/gpu=1,mem=100M",
			ArrayJobID:  2,
			ArrayTaskID: "4",
			Steps: []status.StepRecord{
				{Step: "batch", State: "RUNNING", Start: 2, AllocTRES: "cpu=1,gres/gpu=1,mem=100M", NodeList: "n1"},
			},
		},
		{
			ID:        3,
			State:     "FAILED",
			Submit:    1,
			Start:     2,
			End:       9,
			TimeLimit: 5,
			ExitCode:  3,
			Derived:   3,
			HetJobID:  3,
			HetOffset: 1,
			KilledBy:  "root",
			Steps: []status.StepRecord{
				used,
				{Step: "batch", State: "FAILED", Start: 2, End: 9, ExitCode: 3},
				{Step: "1", State: "FAILED", Start: 2, End: 9, Signal: 9},
			},
		},
		{ID: 4, State: "FAILED", Submit: 1, Start: 2, End: 9, Signal: 9, DerivedSignal: 9, Comment: "x"},
		{ID: 5, State: "CANCELLED", Submit: 1, End: 9},
	}
	for i := range list {
		list[i].QOS = "normal"
	}
	return list
}

// sampleDocument returns the output of a command in the form f.
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

// TestDocumentsHaveSlurmsShape checks that documents have exactly the members of
// Slurm's documents, with the same types at every level.
func TestDocumentsHaveSlurmsShape(t *testing.T) {
	for _, command := range []string{"squeue", "sinfo", "sacct"} {
		for version, parser := range map[string]string{"22.05.8": "", "v0.0.40": "v0.0.40"} {
			data, err := os.ReadFile("testdata/shape/" + command + "-" + version + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			want := shape.Parse(string(data))
			f := dump.Form{
				Parser:  parser,
				Slurm:   "22.05.8",
				Cluster: "ref",
				Command: []string{command},
				User:    "ben",
				Now:     9,
			}
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

// TestRecordedJobsAsJSON compares the values of recorded jobs with those of
// squeue --json.
func TestRecordedJobsAsJSON(t *testing.T) {
	differs := map[string]string{
		"association_id": "associations have names here",
		"cpus_per_task":  "22.05 omits it for most jobs",
		"flags":          "rows do not have the source of the memory request",
		"job_resources":  "only of rows with a layout, which is not recorded",
	}
	l := readListing(t)
	rows := l.rows()
	for i := range rows {
		var doc struct{ Jobs []map[string]any }
		if err := json.Unmarshal(
			dump.Jobs(dump.Form{Slurm: "22.05.8", Cluster: "ref"}, []*status.Job{&rows[i]}),
			&doc,
		); err != nil {
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

// TestAcctYAMLIsTheSameDocument checks that --yaml and --json have the same content.
func TestAcctYAMLIsTheSameDocument(t *testing.T) {
	for _, parser := range []string{"", "v0.0.40"} {
		doc := AcctDocument(
			sampleRecords(),
			&AcctSettings{Settings: Settings{Location: time.UTC}},
			&dump.Form{Parser: parser, Command: []string{"sacct"}},
		)
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
