package reserve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

var now = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)

// nodes returns the nodes of the cluster on which Slurm was observed: n1 to n4, of
// which n3 and n4 are slow and in partition batch as well.
func nodes(down ...string) []status.Node {
	var out []status.Node
	for i, features := range []string{"fast", "fast", "slow", "slow"} {
		n := status.Node{Name: fmt.Sprintf("n%d", i+1), State: "IDLE", Features: []string{features}, Partitions: []string{"debug"}}
		if features == "slow" {
			n.Partitions = append(n.Partitions, "batch")
		}
		if slices.Contains(down, n.Name) {
			n.Flags = []string{"DRAIN"}
		}
		out = append(out, n)
	}
	return out
}

func reservation(change func(*v1alpha1.ReservationSpec)) *v1alpha1.Reservation {
	r := &v1alpha1.Reservation{}
	r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now), Duration: 10}
	change(&r.Spec)
	return r
}

func running(reservation string, on ...string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Spec.Job.Reservation = reservation
	b.Status.State, b.Status.Allocation, b.Status.TimeLimit = v1alpha1.StateRunning, &v1alpha1.Allocation{}, job.Unlimited
	for _, n := range on {
		b.Status.Allocation.Nodes = append(b.Status.Allocation.Nodes, v1alpha1.NodeAllocation{Name: n})
	}
	return b
}

func pool(jobs []*v1alpha1.BatchJob, down ...string) *reserve.Pool {
	return &reserve.Pool{Nodes: nodes(down...), DefaultPartition: "debug", Jobs: jobs,
		PartitionExists: func(p string) bool { return p == "debug" || p == "batch" }}
}

type spec = v1alpha1.ReservationSpec

// TestPlace: the responses of Slurm 22.05.8, and the nodes and flags that it chose.
func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(*spec)
		jobs  []*v1alpha1.BatchJob
		down  []string
		nodes string
		flags string
		err   string
	}{
		{name: "a number", set: func(s *spec) { s.NodeCount = 2 }, nodes: "n[1-2]"},
		{name: "more than exist", set: func(s *spec) { s.NodeCount = 9 }, nodes: "n[1-4]"},
		{name: "by feature", set: func(s *spec) { s.NodeCount, s.Features = 1, "slow" }, nodes: "n3"},
		{name: "an unknown feature", set: func(s *spec) { s.NodeCount, s.Features = 1, "nope" },
			err: "Invalid feature specification"},
		{name: "more than have the feature", set: func(s *spec) { s.NodeCount, s.Features = 3, "slow" },
			err: "Requested node configuration is not available"},
		{name: "in a partition", set: func(s *spec) { s.NodeCount, s.Partition = 1, "batch" }, nodes: "n3"},
		{name: "in a partition that does not exist", set: func(s *spec) { s.NodeCount, s.Partition = 1, "nope" },
			err: "Invalid partition name specified"},
		{name: "no drained ones", set: func(s *spec) { s.NodeCount = 1 }, down: []string{"n1"}, nodes: "n2"},
		{name: "but for maintenance", set: func(s *spec) { s.NodeCount, s.Flags = 1, []string{"MAINT"} },
			down: []string{"n1"}, nodes: "n1", flags: "MAINT"},
		{name: "all are drained", set: func(s *spec) { s.NodeCount = 1 }, down: []string{"n1", "n2", "n3", "n4"},
			err: "Requested nodes are busy"},
		{name: "none with jobs", set: func(s *spec) { s.NodeCount = 1 },
			jobs: []*v1alpha1.BatchJob{running("", "n1", "n2")}, nodes: "n3"},
		{name: "unless jobs are ignored", set: func(s *spec) { s.NodeCount, s.Flags = 1, []string{"IGNORE_JOBS"} },
			jobs: []*v1alpha1.BatchJob{running("", "n1")}, nodes: "n1", flags: "IGNORE_JOBS"},
		{name: "all", set: func(s *spec) { s.Nodes = "ALL" }, nodes: "n[1-4]", flags: "SPEC_NODES ALL_NODES"},
		{name: "all of a partition",
			set:   func(s *spec) { s.Nodes, s.Partition, s.Flags = "ALL", "batch", []string{"PART_NODES"} },
			nodes: "n[3-4]", flags: "SPEC_NODES PART_NODES"},
		{name: "of no partition", set: func(s *spec) { s.Nodes, s.Flags = "ALL", []string{"PART_NODES"} },
			err: string(refusal.PartNodesNeedsAll)},
		{name: "not all of a partition",
			set: func(s *spec) { s.NodeCount, s.Partition, s.Flags = 1, "batch", []string{"PART_NODES"} },
			err: string(refusal.PartNodesNeedsAll)},
		{name: "replaced, but named", set: func(s *spec) { s.Nodes, s.Flags = "n1", []string{"REPLACE"} },
			err: "Invalid node name specified"},
		{name: "unknown", set: func(s *spec) { s.Nodes = "n[1,9]" }, err: "Invalid node name specified"},
		{name: "busy", set: func(s *spec) { s.Nodes = "n1" }, jobs: []*v1alpha1.BatchJob{running("", "n1")},
			err: "Requested nodes are busy"},
		{name: "licenses without a flag", set: func(s *spec) { s.Licenses = map[string]int32{"m": 1} },
			err: "Invalid node name specified"},
		{name: "licenses only",
			set:   func(s *spec) { s.Licenses, s.Flags = map[string]int32{"m": 1}, []string{"ANY_NODES"} },
			flags: "ANY_NODES"},
		{name: "any nodes, and a number", set: func(s *spec) { s.NodeCount, s.Flags = 1, []string{"ANY_NODES"} },
			err: "Requested reservation is invalid"},
	} {
		r := reservation(tt.set)
		err := pool(tt.jobs, tt.down...).Place(r, true)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.err || err == nil && (r.Spec.Nodes != tt.nodes || strings.Join(r.Spec.Flags, " ") != tt.flags) {
			t.Errorf("%s: %q, nodes %s, flags %v", tt.name, got, r.Spec.Nodes, r.Spec.Flags)
		}
	}
}

// TestReplace: how the nodes of a reservation of two, n1 and n2, are replaced.
func TestReplace(t *testing.T) {
	own := running("r", "n1")
	for _, tt := range []struct {
		name  string
		flags string
		jobs  []*v1alpha1.BatchJob
		down  []string
		want  string // "": unchanged
	}{
		{name: "both are suitable"},
		{name: "a drained one", down: []string{"n1"}, want: "n[2-3]"},
		{name: "a drained one, static", flags: "STATIC_ALLOC", down: []string{"n1"}},
		{name: "a drained one, named", flags: "SPEC_NODES", down: []string{"n1"}},
		{name: "maintenance", flags: "MAINT", down: []string{"n1"}},
		{name: "replace down", flags: "REPLACE_DOWN", down: []string{"n1"},
			jobs: []*v1alpha1.BatchJob{running("r", "n2")}, want: "n[2-3]"},
		{name: "replace", flags: "REPLACE", jobs: []*v1alpha1.BatchJob{own}, want: "n[2-3]"},
		{name: "not by one that is busy", flags: "REPLACE", jobs: []*v1alpha1.BatchJob{own, running("", "n3")},
			want: "n[2,4]"},
		{name: "not by one that is down", flags: "REPLACE", jobs: []*v1alpha1.BatchJob{own}, down: []string{"n3"},
			want: "n[2,4]"},
		{name: "by none", flags: "REPLACE", jobs: []*v1alpha1.BatchJob{own, running("", "n3"), running("", "n4")}},
		{name: "its own jobs do not matter", jobs: []*v1alpha1.BatchJob{own}},
	} {
		r := reservation(func(s *spec) { s.NodeCount, s.Nodes, s.Flags = 2, "n[1-2]", strings.Fields(tt.flags) })
		r.Name = "r"
		got, moved := pool(tt.jobs, tt.down...).Replace(r)
		if moved != (tt.want != "") || moved && got != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.name, got, moved, tt.want)
		}
	}
	r := reservation(func(s *spec) { s.Nodes, s.Partition, s.Flags = "n3", "batch", []string{"PART_NODES", "SPEC_NODES"} })
	if got, moved := pool(nil).Replace(r); !moved || got != "n[3-4]" {
		t.Errorf("the partition's nodes: %s %v", got, moved)
	}
}

func TestEnds(t *testing.T) {
	const never = -1
	daily := func(s *spec) { s.Flags = []string{"DAILY"} }
	for _, tt := range []struct {
		name    string
		set     func(*spec)
		started time.Duration // after the start of the reservation
		overRun int32
		want    time.Duration // after it, or never
	}{
		{"a job in it", nil, time.Minute, 0, 10 * time.Minute},
		{"a job that may run longer", nil, time.Minute, 5, 15 * time.Minute},
		{"a job that may run without end", nil, time.Minute, reserve.NoEnd, never},
		{"a job from before the reservation", nil, -time.Hour, 5, -time.Hour},
		{"a job of the previous occurrence", daily, -24*time.Hour + time.Minute, 0, -24*time.Hour + 10*time.Minute},
		{"a job that may run into the next occurrence", daily, -24*time.Hour + time.Minute, 1440, 10 * time.Minute},
		{"a job of the hour before", func(s *spec) { s.Flags = []string{"HOURLY"} }, -time.Hour, 55, 5 * time.Minute},
		{"a job of the week before", func(s *spec) { s.Flags = []string{"WEEKLY"} }, -7 * 24 * time.Hour, 0,
			-7*24*time.Hour + 10*time.Minute},
		{"a job from between two occurrences", daily, -20 * time.Hour, 5, -20 * time.Hour},
		{"a job that started by a clock that is behind", daily, -30 * time.Second, 0, 10 * time.Minute},
		{"a flexible one", func(s *spec) { s.Flags = []string{"FLEX"} }, 0, 0, never},
		{"one without end", func(s *spec) { s.Duration = -1 }, 0, 0, never},
	} {
		r := reservation(func(s *spec) {
			if tt.set != nil {
				tt.set(s)
			}
		})
		at, ok := reserve.Ends(&r.Spec, now.Add(tt.started), tt.overRun)
		if got := at.Sub(now); ok != (tt.want != never) || ok && got != tt.want {
			t.Errorf("%s: %v %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}
