package dump

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/translate/status"
)

// recorded is what squeue --json and sinfo --json of a real Slurm printed.
type recorded struct {
	Jobs  []map[string]any `json:"jobs"`
	Nodes struct {
		Nodes []map[string]any `json:"nodes"`
	} `json:"nodes"`
}

func read(t testing.TB) *recorded {
	t.Helper()
	data, err := os.ReadFile("../format/testdata/listing.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorded)
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// kind is what a program that reads the value sees.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	}
	return reflect.TypeOf(v).Kind().String()
}

var sample = status.Job{ID: 12, Name: "a \"b\"\n", User: "anna", UID: 1001, State: "RUNNING", Partition: "main", TimeLimit: -1, Nodes: 2, CPUs: 4, NodeList: "n[1-2]",
	Layout: "n1 0-1 100 gpu:2(IDX:0-1);n2 0,2 100 ", TRES: "cpu=4,node=2", ArrayJobID: 12, ArrayTaskID: "3", OverSubscribe: "USER", ExitCode: 3, MinMemory: 100}

// TestJobsHaveSlurmsKeys: the keys of 22.05 and their types, null aside.
func TestJobsHaveSlurmsKeys(t *testing.T) {
	want := read(t).Jobs
	for _, job := range []*status.Job{{ID: 1, State: "PENDING"}, &sample} {
		var doc struct {
			Meta struct {
				Slurm struct {
					Release string
					Version struct{ Major, Minor, Micro int }
				}
			}
			Errors []any
			Jobs   []map[string]any
		}
		if err := json.Unmarshal(Jobs(Form{Slurm: "22.05.8"}, []*status.Job{job}), &doc); err != nil {
			t.Fatal(err)
		}
		if v := doc.Meta.Slurm; v.Release != "22.05.8" || v.Version.Major != 22 || v.Version.Minor != 5 || v.Version.Micro != 8 || doc.Errors == nil {
			t.Errorf("%+v", doc.Meta)
		}
		got := doc.Jobs[0]
		for key, v := range got {
			seen := map[string]bool{}
			for _, w := range want {
				if x, ok := w[key]; ok {
					seen[kind(x)] = true
				}
			}
			if len(seen) == 0 || !seen[kind(v)] && kind(v) != "null" && !seen["null"] {
				t.Errorf("%s is %s, in Slurm %v", key, kind(v), seen)
			}
		}
		for _, key := range keys(want[0]) {
			if _, ok := got[key]; !ok && (key != "job_resources" || job.NodeList != "") {
				t.Errorf("%s is missing", key)
			}
		}
	}
}

// TestYAMLIsTheSameDocument in both shapes.
func TestYAMLIsTheSameDocument(t *testing.T) {
	list := []*status.Job{{ID: 1, Name: "true", State: "PENDING", Comment: "- x: #y"}, &sample}
	for _, parser := range []string{"", "v0.0.40"} {
		f := Form{Parser: parser, Slurm: "22.05.8", Command: []string{"squeue", "--yaml"}}
		var a, b any
		if err := json.Unmarshal(Jobs(f, list), &a); err != nil {
			t.Fatal(err)
		}
		f.Syntax = YAML
		text := Jobs(f, list)
		if err := yaml.Unmarshal(text, &b); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%q: the documents differ:\n%s", parser, text)
		}
	}
}

// TestLaterShape: what a viewer for the data parsers reads.
func TestLaterShape(t *testing.T) {
	type number struct {
		Set, Infinite bool
		Number        int64
	}
	var doc struct {
		Jobs []struct {
			JobID     int64    `json:"job_id"`
			State     []string `json:"job_state"`
			TimeLimit number   `json:"time_limit"`
			Task      number   `json:"array_task_id"`
			Nodes     number   `json:"node_count"`
			Exit      struct {
				Status []string `json:"status"`
				Code   number   `json:"return_code"`
			} `json:"exit_code"`
		} `json:"jobs"`
		LastUpdate number `json:"last_update"`
		Meta       struct {
			Plugin struct {
				Parser string `json:"data_parser"`
			} `json:"plugin"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(Jobs(Form{Parser: "v0.0.40", Slurm: "22.05.8", Now: 5}, []*status.Job{&sample}), &doc); err != nil {
		t.Fatal(err)
	}
	j := doc.Jobs[0]
	if j.JobID != 12 || !slices.Equal(j.State, []string{"RUNNING"}) || j.TimeLimit != (number{Infinite: true}) || j.Task != (number{Set: true, Number: 3}) ||
		j.Nodes.Number != 2 || j.Exit.Code.Number != 3 || doc.LastUpdate.Number != 5 || doc.Meta.Plugin.Parser != "data_parser/v0.0.40" {
		t.Errorf("%+v", doc)
	}
}

func TestParseForm(t *testing.T) {
	for text, want := range map[string]bool{"": true, "v0.0.38": true, "v0.0.40": true, "v0.0.41+prefer_refs": true, "data_parser/v0.0.40": true, "v9": false, "list": false} {
		if _, ok := ParseForm(JSON, text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func BenchmarkJobs10000(b *testing.B) {
	list := make([]*status.Job, 10000)
	for i := range list {
		list[i] = &sample
	}
	for b.Loop() {
		b.SetBytes(int64(len(Jobs(Form{Slurm: "22.05.8"}, list))))
	}
}

// TestNodesHaveSlurmsKeys: as for jobs.
func TestNodesHaveSlurmsKeys(t *testing.T) {
	want := read(t).Nodes.Nodes[0]
	var doc struct {
		Nodes []map[string]any `json:"nodes"`
	}
	n := status.Node{Name: "n1", State: "DOWN", Flags: []string{"DRAIN"}, CPUs: 4, Memory: 100, GRES: "gpu:tesla:2", GRESUsed: "gpu:tesla:0", ReasonBy: "root"}
	if err := json.Unmarshal(Nodes(Form{Slurm: "22.05.8"}, []status.Node{n}), &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Nodes[0]
	if !slices.Equal(keys(got), keys(want)) {
		t.Errorf("%q, want %q", keys(got), keys(want))
	}
	for key, v := range got {
		if kind(v) != kind(want[key]) && kind(v) != "null" && want[key] != nil {
			t.Errorf("%s is %s, in Slurm %s", key, kind(v), kind(want[key]))
		}
	}
	var later struct {
		Sinfo []struct {
			Node struct{ State []string } `json:"node"`
		} `json:"sinfo"`
	}
	if err := json.Unmarshal(Groups(Form{Parser: "v0.0.41"}, []status.Partition{{Name: "p", Nodes: []string{"n1"}}}, []status.Node{n}), &later); err != nil {
		t.Fatal(err)
	}
	if len(later.Sinfo) != 1 || !slices.Equal(later.Sinfo[0].Node.State, []string{"DOWN", "DRAIN"}) {
		t.Errorf("%+v", later)
	}
}
