package snapshot

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/translate/job"
)

// Tasks of an array that are jobs of their own, because they were requeued, start only as far as
// the array's limit (%N) permits.
func TestRequeuedTasksObeyTheLimitOfTheirArray(t *testing.T) {
	whole := func(limit int32) *v1alpha1.BatchJob {
		return schedtest.Job(1, func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Array = &job.Array{Spec: "0-2", Max: limit}
		})
	}
	task := func(id int64, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
		return schedtest.Job(id, append(change, func(b *v1alpha1.BatchJob) {
			b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{JobID: 1}, &v1alpha1.ArrayTask{Index: int32(id - 2)}
			b.Spec.Job.Shape = job.Shape{CPUsPerTask: 1}
		})...)
	}
	delayed := func(b *v1alpha1.BatchJob) {
		b.Status.EligibleTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Second)}
	}
	for _, tt := range []struct {
		name string
		jobs []*v1alpha1.BatchJob
		want []string
	}{
		{"no limit", []*v1alpha1.BatchJob{whole(0), task(2), task(3), task(4)}, []string{"2 now", "3 now", "4 now"}},
		{"one at a time", []*v1alpha1.BatchJob{whole(1), task(2), task(3), task(4)},
			[]string{"2 now", "3 JobArrayTaskLimit", "4 JobArrayTaskLimit"}},
		{"two at a time", []*v1alpha1.BatchJob{whole(2), task(2), task(3), task(4)},
			[]string{"2 now", "3 now", "4 JobArrayTaskLimit"}},
		{"one runs", []*v1alpha1.BatchJob{whole(2), task(2), task(3), task(4, schedtest.RunningOn("0", "n1"))},
			[]string{"2 now", "3 JobArrayTaskLimit"}},
		{"the first was requeued later", []*v1alpha1.BatchJob{whole(1), task(2, delayed), task(3), task(4)},
			[]string{"2 JobArrayTaskLimit", "3 now", "4 JobArrayTaskLimit"}},
	} {
		if got := fates(newSnapshot(Input{Jobs: tt.jobs})); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
