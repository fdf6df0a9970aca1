package preemption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
)

// cluster returns a snapshot with a job of QOS low on n1 and a pending job of QOS high
// that requests a node, whose partition has only that node.
func cluster(change func(*snapshot.Input)) *snapshot.Snapshot {
	in := snapshot.Input{
		Policy: snapshot.Policy{QOS: []*v1alpha1.QOS{
			schedtest.QOS("high", func(q *v1alpha1.QOSSpec) { q.Preempt = []string{"low"} }),
			schedtest.QOS("low", func(q *v1alpha1.QOSSpec) { q.GraceTime = 5 })}},
		Parameters: v1alpha1.ClusterSpec{PreemptType: "preempt/qos", PreemptMode: "requeue"},
		Partitions: []*v1alpha1.Partition{
			{ObjectMeta: metav1.ObjectMeta{Name: "debug"}, Spec: v1alpha1.PartitionSpec{Nodes: "n1"}},
		},
		Jobs: []*v1alpha1.BatchJob{
			schedtest.Job(1, schedtest.RunningOn("0-3", "n1"), schedtest.InQOS("low")),
			schedtest.Job(2, schedtest.InQOS("high"), schedtest.WholeNode),
		},
	}
	in.Jobs[0].Status.StartTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Minute)}
	if change != nil {
		change(&in)
	}
	in.Now, in.Nodes = schedtest.Now, schedtest.FourNodes()
	return snapshot.New(in)
}

// tiers puts the pending and the running job in partitions of these tiers, with the
// same node, and preempts by partition.
func tiers(pending, running int32) func(*snapshot.Input) {
	return func(in *snapshot.Input) {
		in.Parameters.PreemptType = "preempt/partition_prio"
		in.Partitions[0].Spec.PriorityTier = pending
		low := &v1alpha1.Partition{
			ObjectMeta: metav1.ObjectMeta{Name: "low"},
			Spec:       v1alpha1.PartitionSpec{Nodes: "n1", PriorityTier: running, GraceTime: 5},
		}
		in.Partitions = append(in.Partitions, low)
		in.Jobs[0].Spec.Partition, in.Jobs[0].Status.Partition = "low", "low"
	}
}

func TestVictims(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*snapshot.Input)
		want   int
	}{
		"one":                        {nil, 1},
		"no preemption":              {func(in *snapshot.Input) { in.Parameters.PreemptType = "" }, 0},
		"mode off":                   {func(in *snapshot.Input) { in.Parameters.PreemptMode = "OFF" }, 0},
		"to suspend is not possible": {func(in *snapshot.Input) { in.Parameters.PreemptMode = "SUSPEND" }, 0},
		"the qos cancels": {func(in *snapshot.Input) {
			in.Policy.QOS[1].Spec.PreemptMode, in.Parameters.PreemptMode = "cancel", "OFF"
		}, 1},
		"of no lower qos":         {func(in *snapshot.Input) { in.Jobs[0].Spec.Job.QOS = "high" }, 0},
		"not the other way round": {func(in *snapshot.Input) { in.Jobs[0].Spec.Job.QOS, in.Jobs[1].Spec.Job.QOS = "high", "low" }, 0},
		"exempt for a while":      {func(in *snapshot.Input) { in.Parameters.PreemptExemptTime = 61 }, 0},
		"going already":           {func(in *snapshot.Input) { in.Jobs[0].Status.Preempt = &v1alpha1.Preemption{By: 2} }, 0},
		"of the same tier":        {func(in *snapshot.Input) { in.Parameters.PreemptType = "partition_prio" }, 0},
		"of a lower tier":         {tiers(2, 1), 1},
		"of a higher tier":        {tiers(1, 2), 0},
		"the lower tier's mode is off": {func(in *snapshot.Input) {
			tiers(2, 1)(in)
			in.Partitions[1].Spec.PreemptMode = "OFF"
		}, 0},
	} {
		s := cluster(tt.change)
		got := Victims(s, 2, nil)
		if len(got) != tt.want || tt.want == 1 && (got[0].Job.Spec.JobID != 1 || got[0].Grace != 5*time.Second) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A partition without a PriorityTier has tier 1, also when victims are ordered.
func TestImportanceOfTheDefaultTier(t *testing.T) {
	unset, explicit := cluster(tiers(2, 0)), cluster(tiers(2, 1))
	if a, b := importance(unset, unset.Job(1)), importance(explicit, explicit.Job(1)); a != b {
		t.Errorf("importance %d without a tier, %d with tier 1", a, b)
	}
}

// While its victim ends, and afterwards, the preemptor comes before all other jobs.
func TestNoJobStartsInPlaceOfThePreemptor(t *testing.T) {
	for _, gone := range []bool{false, true} {
		s := cluster(func(in *snapshot.Input) {
			urgent := int64(1 << 31)
			in.Jobs = append(in.Jobs, schedtest.Job(3, func(b *v1alpha1.BatchJob) { b.Spec.Job.Priority = &urgent }))
			in.Jobs[0].Status.Preempt = &v1alpha1.Preemption{By: 2}
			if gone {
				in.Jobs, in.Preemptors = in.Jobs[1:], map[int64]bool{2: true}
			}
		})
		if ds := s.Plan().Decisions; ds[0].ID != 2 || ds[0].StartNow != gone || ds[1].StartNow {
			t.Errorf("gone %v: %+v", gone, ds)
		}
	}
}

// BenchmarkVictims measures the selection of the victims of a job of eight nodes in a
// full cluster, of which it may preempt every job.
func BenchmarkVictims(b *testing.B) {
	for _, size := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		c := schedtest.NewFullCluster(size.nodes, size.pending)
		in := snapshot.Input{Now: c.Now, Nodes: c.Nodes, Pods: c.Pods, Jobs: c.Jobs}
		in.Parameters.PreemptType, in.Parameters.PreemptMode = "preempt/qos", ModeRequeue
		in.Policy.QOS = []*v1alpha1.QOS{
			schedtest.QOS("high", func(q *v1alpha1.QOSSpec) { q.Preempt = []string{""} }),
			{},
		}
		preemptor := in.Jobs[len(in.Jobs)-1]
		preemptor.Spec.Job.QOS, preemptor.Spec.Job.Shape.MinNodes, preemptor.Spec.Job.Shape.MaxNodes = "high", 8, 8
		s, ok := snapshot.NewIncremental(in, func(int64) []*corev1.Pod { return nil })
		if !ok {
			b.Fatal("the cluster cannot be followed")
		}
		s.Decide()
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			for b.Loop() {
				if n := len(Victims(s, preemptor.Spec.JobID, nil)); n != 8 {
					b.Fatalf("%d victims", n)
				}
			}
		})
	}
}

// A heterogeneous job is preempted as a whole, or not at all.
func TestHetJobsArePreemptedTogether(t *testing.T) {
	component := func(id int64, offset int32, node, qos string) *v1alpha1.BatchJob {
		b := schedtest.Job(id, schedtest.RunningOn("0-3", node), schedtest.InQOS(qos))
		b.Spec.Job.Het = &job.Het{Offset: offset, Size: 2}
		if offset > 0 {
			b.Spec.Origin = &v1alpha1.Origin{JobID: id - int64(offset)}
		}
		b.Status.StartTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Minute)}
		return b
	}
	for _, tt := range []struct {
		change func(first, second *v1alpha1.BatchJob)
		want   int
	}{
		{nil, 2},
		{func(first, _ *v1alpha1.BatchJob) { first.Spec.Job.QOS = "high" }, 0},
		{func(_, second *v1alpha1.BatchJob) { second.Spec.Job.QOS = "high" }, 0},
		{func(_, second *v1alpha1.BatchJob) { second.Status.State = v1alpha1.StateConfiguring }, 0},
	} {
		s := cluster(func(in *snapshot.Input) {
			first, second := component(11, 0, "n2", "low"), component(12, 1, "n1", "low")
			if tt.change != nil {
				tt.change(first, second)
			}
			in.Jobs[0] = first
			in.Jobs = append(in.Jobs, second)
			in.Partitions = append(in.Partitions, &v1alpha1.Partition{
				ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.PartitionSpec{Nodes: "ALL"},
			})
		})
		if got := Victims(s, 2, nil); len(got) != tt.want {
			t.Errorf("%d victims, want %d", len(got), tt.want)
		}
	}
}
