package limits_test

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/job"
)

// The minimum that a job requests is computed without overflow, with the types of generic
// resources, and with --overcommit as the planner allocates it.
func TestRequestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		shape job.Shape
		cpus  int64
		gres  map[string]int64
	}{
		"many CPUs for many tasks": {job.Shape{Tasks: 1 << 16, CPUsPerTask: 1 << 16}, 1 << 32, nil},
		"many tasks on many nodes": {job.Shape{MinNodes: 1 << 16, TasksPerNode: 1 << 16}, math.MaxInt32, nil},
		"overcommitted":            {job.Shape{MinNodes: 2, Tasks: 100, CPUsPerTask: 3, Overcommit: true}, 6, nil},
		"a type on each node": {
			job.Shape{MinNodes: 3, GRES: []job.GRES{{Name: "gpu", Type: "a100", Count: 2, Per: job.PerNode}}}, 3,
			map[string]int64{"gpu": 6, "gpu:a100": 6},
		},
		"any type for each task": {
			job.Shape{Tasks: 4, GRES: []job.GRES{{Name: "gpu", Count: 1, Per: job.PerTask}}}, 4,
			map[string]int64{"gpu": 4},
		},
	} {
		u := limits.RequestOf(&job.Job{Shape: tt.shape}, "anna", "batch")
		if u.CPUs != tt.cpus {
			t.Errorf("%s: %d CPUs, want %d", name, u.CPUs, tt.cpus)
		}
		for resource, want := range tt.gres {
			if got := u.GRES[resource]; got != want {
				t.Errorf("%s: %d of %s, want %d", name, got, resource, want)
			}
		}
	}
}
