package srun

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// recorded is a call of srun 22.05.8 in an allocation, of testdata/layout.json.
type recorded struct {
	Nodes string            // SLURM_JOB_NODELIST
	CPUs  string            // SLURM_JOB_CPUS_PER_NODE
	Env   map[string]string // what srun read
	Args  []string
	Said  []string // lines, without "srun: "
	Tasks []string // the node of each task; empty: no step
}

// differs lists cases in which the output of Berth differs on purpose, with that output.
var differs = map[string]string{
	// Slurm names another reason where a node is excluded and the rest is too small.
	"n[1-3] 4,3,1 -x n2 -N 2": ReasonText,
}

// ReasonText is Berth's line for a step that is too large for its nodes.
const ReasonText = "error: Unable to create step for job 1: " + placement.ReasonProcessors

func TestLayoutAsRecorded(t *testing.T) {
	b, err := os.ReadFile("testdata/layout.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []recorded }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		name := c.Nodes + " " + c.CPUs + " " + strings.Join(c.Args, " ")
		output, tasks := place(t, &c)
		if want, ok := differs[name]; ok {
			c.Said = []string{want}
		}
		if !reflect.DeepEqual(output, c.Said) && len(output)+len(c.Said) > 0 {
			t.Errorf("%s %v:\noutput %q\nwant %q", name, c.Env, output, c.Said)
		}
		if !reflect.DeepEqual(tasks, c.Tasks) && len(tasks)+len(c.Tasks) > 0 {
			t.Errorf("%s: tasks on %v, want %v", name, tasks, c.Tasks)
		}
	}
}

// place does what srun and the coordinator do up to the layout.
func place(t *testing.T, c *recorded) (output, tasks []string) {
	t.Helper()
	var environ []string
	for k, v := range c.Env {
		environ = append(environ, k+"="+v)
	}
	p, err := option.Parse(option.Srun, append(c.Args, "true"), environ)
	if err != nil {
		t.Fatal(err)
	}
	s, warnings := shape(p)
	for _, w := range warnings {
		output = append(output, "Warning: "+w)
	}
	lines, err := checkNodes(p, &s)
	output = append(output, lines...)
	if err != nil {
		var e *slurmerr.Error
		errors.As(err, &e)
		return append(output, "error: "+e.Message), nil
	}
	names, err := hostlist.Expand(c.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]placement.Node, len(names))
	for i, n := range counts(t, c.CPUs) {
		nodes[i] = placement.Node{Name: names[i], CPUs: n}
	}
	l, _, err := placement.Plan(1, nodes, &s, s.CPUsPerTask > 0, false)
	var no *step.RefusedError
	if errors.As(err, &no) {
		for _, line := range no.Lines {
			output = append(output, "error: "+line)
		}
		return output, nil
	}
	for _, n := range l.TaskNode() {
		tasks = append(tasks, names[l.Nodes[n]])
	}
	return output, tasks
}

// counts reads 4,3(x2).
func counts(t *testing.T, text string) []int32 {
	var list []int32
	for part := range strings.SplitSeq(text, ",") {
		n, times, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		v, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		k, _ := strconv.Atoi(times)
		for range max(k, 1) {
			list = append(list, int32(v))
		}
	}
	return list
}
