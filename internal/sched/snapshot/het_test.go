package snapshot

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/translate/job"
)

// component is one of the components of heterogeneous job 1: the leader keeps
// the job's number, the others are split off it. Each takes whole nodes.
func component(offset, size, nodes int32, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := schedtest.Job(int64(offset) + 1)
	b.Spec.Job.Het = &job.Het{Offset: offset, Size: size}
	b.Spec.Job.Shape = job.Shape{MinNodes: nodes, MaxNodes: nodes, CPUsPerTask: 4}
	if offset > 0 {
		b.Spec.Origin = &v1alpha1.Origin{JobID: 1}
	}
	for _, c := range change {
		c(b)
	}
	return b
}

// fates are what the plan does with each job: "now" or why it waits.
func fates(s *Snapshot) []string {
	var out []string
	for _, d := range s.Plan().Decisions {
		fate := d.Reason
		if d.StartNow {
			fate = "now"
		}
		out = append(out, fmt.Sprintf("%d %s", d.ID, fate))
	}
	slices.Sort(out)
	return out
}

// There are four nodes of four CPUs. The reasons are those of Slurm 22.05.8.
func TestComponentsStartTogetherOrNotAtAll(t *testing.T) {
	held := func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }
	for _, tt := range []struct {
		name string
		jobs []*v1alpha1.BatchJob
		want []string
	}{
		{"all fit", []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 3)}, []string{"1 now", "2 now"}},
		{"each fits, both do not", []*v1alpha1.BatchJob{component(0, 2, 2), component(1, 2, 3)}, []string{"1 Resources", "2 Resources"}},
		{"what they do not take is another's", []*v1alpha1.BatchJob{component(0, 2, 2), component(1, 2, 3),
			schedtest.Job(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 1 })}, []string{"1 Resources", "2 Resources", "9 now"}},
		{"one is held", []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 1, held)}, []string{"1 Resources", "2 JobHeldUser"}},
		{"one is in a partition that is down", []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 1, schedtest.InPartition("off"))},
			[]string{"1 Resources", "2 PartitionDown"}},
		{"one is not there yet", []*v1alpha1.BatchJob{component(0, 3, 1), component(1, 3, 1)}, []string{"1 Priority", "2 Priority"}},
		{"the leader is over", []*v1alpha1.BatchJob{component(0, 2, 1, schedtest.State("CANCELLED")), component(1, 2, 1)}, []string{"2 Priority"}},
		{"one is over", []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 1, schedtest.State("CANCELLED"))}, []string{"1 Priority"}},
		{"one runs", []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 1, schedtest.RunningOn("0-1", "n1"))}, []string{"1 Priority"}},
	} {
		if got := fates(newSnapshot(Input{Jobs: tt.jobs})); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Components of two jobs are two groups.
func TestEachHeterogeneousJobIsItsOwnGroup(t *testing.T) {
	second := []*v1alpha1.BatchJob{component(0, 2, 1), component(1, 2, 1)}
	for i, b := range second {
		b.Spec.JobID = int64(i) + 11
	}
	second[1].Spec.Origin.JobID = 11
	s := newSnapshot(
		Input{Jobs: append([]*v1alpha1.BatchJob{component(0, 2, 2), component(1, 2, 3), schedtest.Job(5)}, second...)},
	)
	var groups []int64
	for i := range s.Pending {
		groups = append(groups, s.Pending[i].Group)
	}
	if !slices.Equal(groups, []int64{1, 1, 0, 11, 11}) {
		t.Errorf("groups %v", groups)
	}
	if s.Pending[0].Blocked != "" {
		t.Errorf("%+v", s.Pending[0])
	}
}
