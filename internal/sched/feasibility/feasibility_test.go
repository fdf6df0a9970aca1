package feasibility

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
)

// newSnapshot returns a snapshot of the input, with four nodes and, by default, three
// partitions.
func newSnapshot(in snapshot.Input) *snapshot.Snapshot {
	in.Now, in.Nodes = schedtest.Now, schedtest.FourNodes()
	if in.Partitions == nil {
		in.Partitions = schedtest.Partitions()
	}
	return snapshot.New(in)
}

func TestCheck(t *testing.T) {
	mem := func(mib int64) *int64 { return &mib }
	empty := &v1alpha1.Partition{
		ObjectMeta: metav1.ObjectMeta{Name: "empty"},
		Spec:       v1alpha1.PartitionSpec{Nodes: "n9"},
	}
	second := &v1alpha1.Partition{
		ObjectMeta: metav1.ObjectMeta{Name: "second"},
		Spec:       v1alpha1.PartitionSpec{Nodes: "n2"},
	}
	s := newSnapshot(snapshot.Input{Partitions: append(schedtest.Partitions(), empty, second)})
	strict := newSnapshot(snapshot.Input{Parameters: v1alpha1.ClusterSpec{EnforcePartLimits: "ALL"}})
	for _, tt := range []struct {
		name   string
		s      *snapshot.Snapshot
		part   string
		job    job.Job
		expect error
	}{
		{"anything", s, "", job.Job{}, nil},
		{"no such partition", s, "nosuch", job.Job{}, ErrPartition},
		{"all nodes", s, "", job.Job{Shape: job.Shape{MinNodes: 4, MaxNodes: 4}}, nil},
		{"fewer nodes than there are between those of the list", s, "", job.Job{
			Shape:     job.Shape{MinNodes: 2, MaxNodes: 2},
			Placement: job.Placement{NodeList: []string{"n1", "n3"}, Contiguous: true},
		}, ErrNodeCount},
		{"of a held job", s, "", job.Job{
			Hold: "user", Shape: job.Shape{MinNodes: 2, MaxNodes: 2},
			Placement: job.Placement{NodeList: []string{"n3", "n1"}, Contiguous: true},
		}, ErrNodeCount},
		{"as many", s, "", job.Job{
			Hold: "user", Shape: job.Shape{MinNodes: 1, MaxNodes: 3},
			Placement: job.Placement{NodeList: []string{"n1", "n3"}, Contiguous: true},
		}, nil},
		{"one too many", s, "", job.Job{Shape: job.Shape{MinNodes: 5}}, ErrNodeCount},
		{"a partition without nodes", s, "empty", job.Job{}, ErrProcessors},
		{"a cluster without nodes", snapshot.New(snapshot.Input{Now: schedtest.Now, Partitions: schedtest.Partitions()}), "", job.Job{Shape: job.Shape{MinNodes: 4}}, nil},
		{"too many tasks", s, "", job.Job{Shape: job.Shape{Tasks: 17}}, ErrProcessors},
		{"too many on each node, held", s, "", job.Job{Hold: "user", Shape: job.Shape{MinNodes: 2, TasksPerNode: 1<<31 - 1}}, ErrProcessors},
		{"too many on few", s, "", job.Job{Shape: job.Shape{Tasks: 16, MinNodes: 2, MaxNodes: 2}}, ErrNodeConfig},
		{"too many for one", s, "", job.Job{Shape: job.Shape{CPUsPerTask: 5}}, ErrNodeCPUs},
		{"too many on each", s, "", job.Job{Shape: job.Shape{MinCPUs: 5}}, ErrNodeCPUs},
		{"CPUs for each card, without any", s, "", job.Job{Shape: job.Shape{CPUsPerGPU: 4}}, nil},
		{"too many for each card, without any", s, "", job.Job{Shape: job.Shape{CPUsPerGPU: 5}}, ErrNodeConfig},
		{"too many tasks for each socket", s, "", job.Job{Shape: job.Shape{TasksPerSocket: 5}}, ErrNodeConfig},
		{"too many tasks for each core", s, "", job.Job{Shape: job.Shape{TasksPerCore: 5}}, ErrNodeConfig},
		{"too much memory", s, "", job.Job{Shape: job.Shape{MemPerNode: mem(5000)}}, ErrNodeMemory},
		{"too much memory, held", s, "", job.Job{Hold: "user", Shape: job.Shape{MemPerNode: mem(5000)}}, nil},
		{"too many cards, held", s, "", job.Job{Hold: "user", Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 3, Per: job.PerNode}}}}, nil},
		{"too many CPUs, held", s, "", job.Job{Hold: "user", Shape: job.Shape{Tasks: 17}}, ErrProcessors},
		{"no such feature, held", s, "", job.Job{Hold: "user", Placement: job.Placement{Constraint: "nosuch"}}, ErrFeature},
		{"too much memory for a CPU", s, "", job.Job{Shape: job.Shape{MemPerCPU: mem(5000)}}, ErrNodeMemory},
		{"too much memory for all CPUs", s, "", job.Job{Shape: job.Shape{MemPerCPU: mem(2000), CPUsPerTask: 4}}, ErrNodeConfig},
		{"too many cores for each socket", s, "", job.Job{Shape: job.Shape{CoresPerSocket: 5}}, ErrNodeShape},
		{"too many sockets for the nodes", s, "", job.Job{Shape: job.Shape{MinNodes: 4, MaxNodes: 4, SocketsPerNode: 5}}, ErrProcessors},
		{"too many cores for the nodes", s, "", job.Job{Shape: job.Shape{MinNodes: 2, CoresPerSocket: 9}}, ErrProcessors},
		{"too many cores, for tasks", s, "", job.Job{Shape: job.Shape{Tasks: 2, MinNodes: 2, MaxNodes: 2, CoresPerSocket: 9}}, ErrNodeShape},
		{"too many cores, for some nodes", s, "", job.Job{Shape: job.Shape{MinNodes: 2, MaxNodes: 3, CoresPerSocket: 9}}, ErrNodeShape},
		{"too many threads, overcommitted", s, "", job.Job{Shape: job.Shape{MinNodes: 2, MaxNodes: 2, Overcommit: true, ThreadsPerCore: 9}}, ErrNodeShape},
		{"cores and memory", s, "", job.Job{Shape: job.Shape{CoresPerSocket: 5, MemPerNode: mem(5000)}}, ErrNodeMemory},
		{"features of no node here, too many CPUs", s, "batch", job.Job{Shape: job.Shape{CPUsPerTask: 5}, Placement: job.Placement{Constraint: "red"}}, ErrNodeConfig},
		{"features of no node together, too much memory", s, "second", job.Job{Shape: job.Shape{MemPerNode: mem(5000)}, Placement: job.Placement{Constraint: "fast&red"}}, ErrNodeConfig},
		{"features of one node, too much memory", s, "", job.Job{Shape: job.Shape{MemPerNode: mem(5000)}, Placement: job.Placement{Constraint: "fast&red"}}, ErrNodeMemory},
		{"features of some nodes, too much memory", s, "", job.Job{Shape: job.Shape{MinNodes: 2, MaxNodes: 2, MemPerNode: mem(5000)}, Placement: job.Placement{Constraint: "fast*1&red*1"}}, ErrNodeMemory},
		{"neither CPUs nor memory", s, "", job.Job{Shape: job.Shape{CPUsPerTask: 5, MemPerNode: mem(5000)}}, ErrNodeCPUs},
		{"no such node to exclude", s, "", job.Job{Placement: job.Placement{Exclude: []string{"n1", "nosuch"}}}, ErrNodeName},
		{"a feature", s, "", job.Job{Placement: job.Placement{Constraint: "fast&red"}}, nil},
		{"either", s, "", job.Job{Placement: job.Placement{Constraint: "nosuch|red"}}, ErrFeature},
		{"a batch host of other nodes", s, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "fast"}}, ErrBatchHost},
		{"a batch host of any nodes", s, "", job.Job{Placement: job.Placement{Batch: "red"}}, ErrBatchHost},
		{"a batch host of no form", s, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "red&&red"}}, ErrBatchHost},
		{"a batch host", s, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "red"}}, nil},
		{"half a segment", s, "", job.Job{Shape: job.Shape{MinNodes: 3, MaxNodes: 3}, Placement: job.Placement{Segment: 2}}, ErrTopology},
		{"no such feature", s, "", job.Job{Placement: job.Placement{Constraint: "nosuch"}}, ErrFeature},
		{"features of no node here", s, "batch", job.Job{Placement: job.Placement{Constraint: "red"}}, ErrNodeConfig},
		{"no such node", s, "", job.Job{Placement: job.Placement{NodeList: []string{"nosuch"}}}, ErrNodeName},
		{"a node elsewhere", s, "batch", job.Job{Placement: job.Placement{NodeList: []string{"n1"}}}, ErrNotInPart},
		{"all but excluded", s, "", job.Job{Shape: job.Shape{MinNodes: 4}, Placement: job.Placement{Exclude: []string{"n1"}}}, ErrNodeConfig},
		{"cards", s, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 2, Per: job.PerNode}}}}, nil},
		{"too many cards", s, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 3, Per: job.PerNode}}}}, ErrNodeConfig},
		{"other cards", s, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Type: "x", Count: 1, Per: job.PerNode}}}}, ErrNodeConfig},
		{"no such thing", s, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "fpga", Count: 1, Per: job.PerNode}}}}, ErrGRES},
		{"too long waits", s, "batch", job.Job{Time: job.Time{Limit: 60}}, nil},
		{"too long is refused", strict, "batch", job.Job{Time: job.Time{Limit: 60}}, ErrTimeLimit},
		{"too wide is refused", strict, "batch", job.Job{Shape: job.Shape{MinNodes: 2}}, ErrNodeCount},
	} {
		b := schedtest.Job(0, schedtest.InPartition(tt.part))
		b.Spec.Job = tt.job
		if err := Check(tt.s, b); !errors.Is(err, tt.expect) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.expect)
		}
	}
}

// Preferred features must exist; a trailing operator is ignored, as in Slurm.
// TestStages: Slurm finds required nodes that do not exist first, then too many CPUs and nodes,
// then required nodes outside the partition, then excluded nodes and features.
func TestStages(t *testing.T) {
	s := newSnapshot(snapshot.Input{})
	for _, tt := range []struct {
		job         job.Job
		size, names error
	}{
		{job.Job{}, nil, nil},
		{job.Job{Placement: job.Placement{Constraint: "nosuch"}}, nil, ErrFeature},
		{job.Job{Shape: job.Shape{MinNodes: 5}, Placement: job.Placement{Constraint: "nosuch"}}, ErrNodeCount, ErrNodeCount},
		{job.Job{Shape: job.Shape{MinNodes: 5}, Placement: job.Placement{Exclude: []string{"nosuch"}}},
			ErrNodeCount, ErrNodeCount},
		{job.Job{Shape: job.Shape{MinNodes: 5}, Placement: job.Placement{NodeList: []string{"nosuch"}}},
			ErrNodeName, ErrNodeName},
		{job.Job{Placement: job.Placement{Exclude: []string{"nosuch"}, Constraint: "nosuch"}}, nil, ErrNodeName},
		{job.Job{Partitions: []string{"batch"}, Placement: job.Placement{NodeList: []string{"n1"}}},
			ErrNotInPart, ErrNotInPart},
		{job.Job{Placement: job.Placement{Constraint: "nosuch", Batch: "red"}}, nil, ErrBatchHost},
		{job.Job{Shape: job.Shape{CPUsPerTask: 5}}, nil, nil},
	} {
		b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{Job: tt.job}}
		if err := CheckUpTo(Size, s, b); !errors.Is(err, tt.size) {
			t.Errorf("%+v: size: %v, want %v", tt.job, err, tt.size)
		}
		if err := CheckUpTo(Names, s, b); !errors.Is(err, tt.names) {
			t.Errorf("%+v: names: %v, want %v", tt.job, err, tt.names)
		}
	}
}

func TestCheckFeatures(t *testing.T) {
	s := newSnapshot(snapshot.Input{})
	for prefer, want := range map[string]error{
		"nosuch": ErrPrefer, "fast&nosuch": ErrPrefer, "[": ErrFeature, "(fast": ErrPrefer, "fast)": ErrFeature, "fast": nil, "fast|": nil,
	} {
		b := schedtest.Job(0)
		b.Spec.Job.Placement.Prefer = prefer
		if err := Check(s, b); !errors.Is(err, want) {
			t.Errorf("--prefer=%s: %v, want %v", prefer, err, want)
		}
	}
	for constraint, want := range map[string]error{"nosuch": ErrFeature, "fast&": nil, "&fast": ErrFeature} {
		b := schedtest.Job(0)
		b.Spec.Job.Placement.Constraint = constraint
		if err := Check(s, b); !errors.Is(err, want) {
			t.Errorf("--constraint=%s: %v, want %v", constraint, err, want)
		}
	}
}

// A job is feasible if it is in any of its partitions.
func TestCheckSeveralPartitions(t *testing.T) {
	s := newSnapshot(snapshot.Input{})
	for _, names := range [][]string{{"nosuch", "debug"}, {"batch", "debug"}} {
		b := schedtest.Job(0)
		b.Spec.Partition, b.Spec.Job.Partitions = names[0], names
		b.Spec.Job.Placement.NodeList = []string{"n1"}
		if err := Check(s, b); err != nil {
			t.Errorf("%v: %v", names, err)
		}
	}
	b := schedtest.Job(0)
	b.Spec.Job.Partitions = []string{"nosuch", "off"}
	b.Spec.Job.Shape.MinNodes = 5
	if err := Check(s, b); !errors.Is(err, ErrPartition) {
		t.Errorf("%v, want the error of the first partition", err)
	}
}

// With EnforcePartLimits=ALL every partition has the required nodes and enough CPUs, but a job
// need not fit on the nodes of each.
func TestCheckEachPartition(t *testing.T) {
	all := newSnapshot(snapshot.Input{Parameters: v1alpha1.ClusterSpec{EnforcePartLimits: "ALL"}})
	for _, names := range [][]string{{"debug", "batch"}, {"batch", "debug"}} {
		for _, tt := range []struct {
			job  job.Job
			want error
		}{
			{job.Job{Placement: job.Placement{NodeList: []string{"n1"}}}, ErrNotInPart},
			{job.Job{Shape: job.Shape{Tasks: 12}}, ErrProcessors},
			{job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 1, Per: job.PerNode}}}}, nil},
		} {
			b := schedtest.Job(0)
			b.Spec.Job = tt.job
			b.Spec.Partition, b.Spec.Job.Partitions = names[0], names
			if err := Check(all, b); !errors.Is(err, tt.want) {
				t.Errorf("%v: %+v: %v, want %v", names, tt.job, err, tt.want)
			}
		}
	}
}

// The check of a count that no cluster has takes no longer than that of others.
func TestCheckHugeGPUCount(t *testing.T) {
	s := newSnapshot(snapshot.Input{})
	b := schedtest.Job(0)
	b.Spec.Job.Shape.GRES = []job.GRES{{Name: "gpu", Count: 9_000_000_000_000_000_000, Per: job.PerJob}}
	if err := Check(s, b); err == nil {
		t.Error("a job with more GPUs than any cluster has is feasible")
	}
}
