package why_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/why"
)

const now = 1795263065 // 2026-11-21T12:11:05 UTC

func node(name string, cpus, used int32, gres, gresUsed string) status.Node {
	return status.Node{
		Name:       name,
		Partitions: []string{"main"},
		State:      "MIXED",
		CPUs:       cpus,
		CPUsAlloc:  used,
		Memory:     65536,
		MemAlloc:   1024 * int64(used),
		GRES:       gres,
		GRESUsed:   gresUsed,
	}
}

func job(reason string) status.Job {
	return status.Job{
		ID:        7,
		User:      "alice",
		Partition: "main",
		State:     "PENDING",
		Reason:    reason,
		Nodes:     1,
		CPUs:      4,
		Priority:  10,
		TimeLimit: 60,
	}
}

// text returns an answer as one text.
func text(a why.Answer) string {
	lines := []string{string(a.Category) + ":", a.Summary}
	lines = append(lines, a.Missing...)
	lines = append(lines, a.Release...)
	return strings.Join(append(lines, a.Action), "\n")
}

func TestExplain(t *testing.T) {
	gpu := job("Resources")
	gpu.GRES, gpu.Start, gpu.PlannedNodes = "gpu:a100:4", now+6655, "n7"
	whole := job("Resources")
	whole.OverSubscribe, whole.Nodes = "NO", 2
	dep := job("Dependency")
	dep.Dependency = "afterok:5(unfulfilled),afterany:6_3(unfulfilled)"
	one := job("Dependency")
	one.Dependency = "afterok:5(unfulfilled)"
	begin := job("BeginTime")
	begin.Eligible = now + 3600
	memory := job("Resources")
	memory.MinMemory, memory.MemoryPerCPU = 40000, true
	hostile := job("QOS\x1b[2J")
	hostile.Message = "a\x1b[31mb"
	long := job("Priority")
	long.TimeLimit = -1
	held := job("JobHeldUser")
	nodes := []status.Node{
		node("n7", 64, 32, "gpu:a100:4", "gpu:a100:1(IDX:0)"),
		node("n8", 64, 64, "gpu:v100:8", ""),
		node("n9", 8, 8, "", ""),
	}
	running := []status.Job{
		{ID: 123, User: "bob", State: "RUNNING", NodeList: "n7", End: now + 6655, TimeLimit: 600},
		{ID: 124, User: "eve", State: "RUNNING", NodeList: "n[7-8]", End: 0, TimeLimit: -1},
		{ID: 5, User: "alice", State: "RUNNING", NodeList: "n9", End: now + 60, TimeLimit: 1},
	}
	for name, c := range map[string]struct {
		job   status.Job
		ahead int
		want  []string
	}{
		"gpu": {gpu, 0, []string{"resources:", "4 a100 GPUs on one node", "0 of 1 nodes that are large enough", "The nearest is n7, with 3 of 4 GPUs free; 123 there ends at 14:02 (in 1:50:55)",
			"should start at 14:02 (in 1:50:55) on n7", "123 has n7 until 14:02", "124 has n[7-8] without a time limit (eve)"}},
		"whole":   {whole, 0, []string{"2 whole nodes for itself", "The nearest is n9, with 8 of 8 CPUs in use", "No start is planned yet"}},
		"memory":  {memory, 0, []string{"160000M of memory on one node", "None of the 3 nodes"}},
		"turn":    {long, 3, []string{"turn:", "3 jobs of its partition have a higher priority", "First in line: 99 of bob, priority 50; this one has 10", "With a shorter time limit it may"}},
		"new job": {job("None"), 0, []string{"has not considered it yet"}},
		"dep":     {dep, 0, []string{"dependency:", "for 5 to succeed: it is RUNNING, and ends at 12:12 (in 1:00) at the latest", "for 6_3 to end"}},
		"one":     {one, 0, []string{"It waits for 5 to succeed: it is RUNNING"}},
		"begin":   {begin, 0, []string{"you:", "begin at 13:11 (in 1:00:00)", "scontrol update JobId=7 StartTime=now"}},
		"held":    {held, 0, []string{"you:", "scontrol release 7"}},
		"qos":     {job("QOSMaxJobsPerUserLimit"), 0, []string{"limits:", "a limit of its QOS (QOSMaxJobsPerUserLimit)"}},
		"assoc":   {job("AssocGrpCpuLimit"), 0, []string{"limits:", "a limit of its account"}},
		"never":   {job("BadConstraints"), 0, []string{"impossible:", "No node of its partition can ever", "scancel 7"}},
		"new":     {job("SomethingNew"), 0, []string{"site:", "gives the reason SomethingNew"}},
		"hostile": {hostile, 0, []string{`QOS\x1b[2J`, `a\x1b[31mb`}},
	} {
		f := &why.Facts{
			Job:     c.job,
			Now:     now,
			Nodes:   nodes,
			Running: running,
			Ahead:   c.ahead,
			First:   status.Job{ID: 99, User: "bob", Priority: 50},
		}
		got := text(why.Explain(f))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
		if strings.ContainsAny(got, "\x1b%") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The resources of a completing job are shown as free, but no job can use them yet.
func TestNothingFitsOnCompletingNodes(t *testing.T) {
	for flag, want := range map[string]string{"": "1 of 1 nodes", "COMPLETING": "0 of 1 nodes"} {
		n := node("n1", 8, 0, "", "")
		if flag != "" {
			n.Flags = []string{flag}
		}
		got := text(why.Explain(&why.Facts{Job: job("Resources"), Now: now, Nodes: []status.Node{n}}))
		if !strings.Contains(got, want) {
			t.Errorf("flag %q: %q is missing in\n%s", flag, want, got)
		}
	}
}

// Explain has an answer for any contents of the rows.
func FuzzExplain(f *testing.F) {
	f.Add(
		"Resources",
		"gpu:a100:2,gpu:3",
		"n[1-3]",
		"afterok:3:4?after:5_*",
		"cpu=4,gres/gpu=x",
		int32(2),
		int32(3),
		int64(9),
	)
	f.Add("Dependency,x", "gpu:", "n[", ":,::", "", int32(-1), int32(-5), int64(-9))
	f.Fuzz(func(t *testing.T, reason, gres, list, dep, tres string, nodes, cpus int32, start int64) {
		j := status.Job{
			ID:           1,
			Partition:    "main",
			State:        "PENDING",
			Reason:       reason,
			GRES:         gres,
			PlannedNodes: list,
			Dependency:   dep,
			TRES:         tres,
			Nodes:        nodes,
			CPUs:         cpus,
			Start:        start,
		}
		facts := &why.Facts{
			Job:     j,
			Now:     now,
			Running: []status.Job{{ID: 2, NodeList: list, End: start}},
			Nodes:   []status.Node{node("n1", cpus, nodes, gres, gres)},
		}
		a := why.Explain(facts)
		if a.Category == "" || a.Summary == "" {
			t.Errorf("no answer for %q", reason)
		}
		if got := text(a); strings.ContainsAny(got, "\x1b\a") {
			t.Errorf("the answer has control characters: %q", got)
		}
	})
}
