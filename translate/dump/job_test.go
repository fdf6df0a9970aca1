package dump

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/translate/status"
)

var sample = status.Job{
	ID:            12,
	Name:          "a \"b\"\n",
	User:          "anna",
	UID:           1001,
	State:         "RUNNING",
	Partition:     "main",
	TimeLimit:     -1,
	Nodes:         2,
	CPUs:          4,
	NodeList:      "n[1-2]",
	Layout:        "n1 0-1 100 gpu:2(IDX:0-1);n2 0,2 100 ",
	TRES:          "cpu=4,node=2",
	ArrayJobID:    12,
	ArrayTaskID:   "3",
	OverSubscribe: "USER",
	ExitCode:      3,
	MinMemory:     100,
}

// emptyIsNull replaces empty texts by null, as in the YAML of 22.05.
func emptyIsNull(v any) any {
	switch x := v.(type) {
	case string:
		if x == "" {
			return nil
		}
	case map[string]any:
		for key, member := range x {
			x[key] = emptyIsNull(member)
		}
	case []any:
		for i, item := range x {
			x[i] = emptyIsNull(item)
		}
	}
	return v
}

// TestYAMLIsTheSameDocument compares JSON and YAML in both forms.
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
		if parser == "" {
			a = emptyIsNull(a)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%q: the documents differ:\n%s", parser, text)
		}
	}
}

// TestLaterShape checks members that programs for the data parsers read.
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
	if err := json.Unmarshal(
		Jobs(Form{Parser: "v0.0.40", Slurm: "22.05.8", Now: 5}, []*status.Job{&sample}),
		&doc,
	); err != nil {
		t.Fatal(err)
	}
	j := doc.Jobs[0]
	if j.JobID != 12 || !slices.Equal(j.State, []string{"RUNNING"}) || j.TimeLimit != (number{Infinite: true}) || j.Task != (number{Set: true, Number: 3}) ||
		j.Nodes.Number != 2 || j.Exit.Code.Number != 3 || doc.LastUpdate.Number != 5 ||
		doc.Meta.Plugin.Parser != "data_parser/v0.0.40" {
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

// TestYAMLHasTags checks the tags of the YAML of 22.05.
func TestYAMLHasTags(t *testing.T) {
	text := string(Jobs(Form{Syntax: YAML, Slurm: "22.05.8"}, []*status.Job{&sample}))
	for _, want := range []string{
		"%YAML 1.1\n--- !!map\n!!str meta: !!map\n  !!str plugin: !!map\n",
		"\n!!str errors: !!seq []\n!!str jobs: !!seq\n- !!map\n  !!str account: !!null null\n",
		"\n  !!str flags: !!seq\n  - !!str JOB_MEM_SET\n", "\n  !!str billable_tres: !!float 4.0\n",
		"\n  !!str contiguous: !!bool false\n", "\n  !!str job_id: !!int 12\n",
		"\n    !!str allocated_nodes: !!seq\n    - !!map\n      !!str sockets: !!map\n        !!str 0: !!map\n",
		"\n  !!str name: !!str \"a \\\"b\\\"\\n\"\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.HasSuffix(text, "\n...\n") {
		t.Errorf("%q", text[len(text)-20:])
	}
}

// TestLaterNodes checks that states are a list in the form of data parsers.
func TestLaterNodes(t *testing.T) {
	n := status.Node{Name: "n1", State: "DOWN", Flags: []string{"DRAIN"}, CPUs: 4, Memory: 100}
	var later struct {
		Sinfo []struct {
			Node struct{ State []string } `json:"node"`
		} `json:"sinfo"`
	}
	if err := json.Unmarshal(
		Groups(Form{Parser: "v0.0.41"}, []status.Partition{{Name: "p", Nodes: []string{"n1"}}}, []status.Node{n}),
		&later,
	); err != nil {
		t.Fatal(err)
	}
	if len(later.Sinfo) != 1 || !slices.Equal(later.Sinfo[0].Node.State, []string{"DOWN", "DRAIN"}) {
		t.Errorf("%+v", later)
	}
}
