package limits_test

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
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

// TestDefaultWall: the MaxWall of the QOS, or else of the association or an account above it,
// is the time limit of a job that requests none, if limits are enforced.
func TestDefaultWall(t *testing.T) {
	fast, plain := &v1alpha1.QOS{}, &v1alpha1.QOS{}
	fast.Name, fast.Spec.Limits.MaxWall, plain.Name = "fast", 60, "normal"
	science, theory := &v1alpha1.Account{}, &v1alpha1.Account{}
	science.Name, science.Spec.Limits.MaxWall, theory.Name, theory.Spec.Parent = "science", 90, "theory", "science"
	anna := &v1alpha1.User{}
	anna.Name = "anna"
	anna.Spec.Associations = []v1alpha1.Association{{Account: "science", Limits: v1alpha1.Limits{MaxWall: 33}}}
	in := limits.Input{
		QOS: []*v1alpha1.QOS{fast, plain}, Accounts: []*v1alpha1.Account{science, theory},
		Users: []*v1alpha1.User{anna},
	}
	for _, c := range []struct {
		account, qos string
		enforce      []string
		want         int32
	}{
		{"science", "fast", nil, 60}, {"science", "normal", nil, 33}, {"theory", "normal", nil, 90},
		{"", "normal", nil, 0}, {"science", "fast", []string{"associations"}, 0},
	} {
		in.Enforce = c.enforce
		u := limits.Usage{User: "anna", Account: c.account, QOS: c.qos}
		if got := limits.New(&in).DefaultWall(&u); got != c.want {
			t.Errorf("%q with QOS %q, %q enforced: %d minutes, want %d", c.account, c.qos, c.enforce, got, c.want)
		}
	}
}
