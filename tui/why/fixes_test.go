package why_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/why"
)

func TestSingletonIsASentence(t *testing.T) {
	j := job("Dependency")
	j.Dependency = "singleton(unfulfilled)"
	got := text(why.Explain(&why.Facts{Job: j, Now: now}))
	if strings.Contains(got, "waits Only") || !strings.Contains(got, "Only one job with this name and user runs at a time.") {
		t.Errorf("%s", got)
	}
}

// The state of an array task is that of this task, not of another one of the array.
func TestDependencyOnArrayTask(t *testing.T) {
	j := job("Dependency")
	j.Dependency = "afterok:6_3(unfulfilled)"
	others := []status.Job{
		{ID: 60, ArrayJobID: 6, ArrayTaskID: "1", State: "COMPLETED"},
		{ID: 62, ArrayJobID: 6, ArrayTaskID: "3", State: "SUSPENDED"},
	}
	got := text(why.Explain(&why.Facts{Job: j, Others: others, Now: now}))
	if !strings.Contains(got, "for 6_3 to succeed: it is SUSPENDED") {
		t.Errorf("%s", got)
	}
}

// A node with several types of GPU has each of them.
func TestSeveralTypesOfGPU(t *testing.T) {
	j := job("Resources")
	j.GRES = "gpu:a100:2"
	n := node("n1", 64, 0, "gpu:a100:2,gpu:v100:2", "gpu:a100:0(IDX:N/A),gpu:v100:2(IDX:0-1)")
	got := text(why.Explain(&why.Facts{Job: j, Nodes: []status.Node{n}, Now: now}))
	if !strings.Contains(got, "1 of 1 nodes have that free now") {
		t.Errorf("%s", got)
	}
}

// A node where a job is completing lacks no countable resource.
func TestNearestNodeIsCompleting(t *testing.T) {
	n := node("n1", 64, 0, "", "")
	n.Flags = []string{"COMPLETING"}
	for _, share := range []string{"", "NO"} {
		j := job("Resources")
		j.OverSubscribe = share
		got := text(why.Explain(&why.Facts{Job: j, Nodes: []status.Node{n}, Now: now}))
		if !strings.Contains(got, "The nearest is n1, where a job is completing.") {
			t.Errorf("%s", got)
		}
	}
}
