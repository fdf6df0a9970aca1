package planner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// unsubmitted returns a job of that number of CPUs that is not submitted.
func unsubmitted(user string, cpus int32, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 1<<53 - 1, User: user, Partition: "debug",
		Job: job.Job{Shape: job.Shape{CPUsPerTask: cpus}, Time: job.Time{Limit: 5}}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func (b *bench) forecastOf(j *v1alpha1.BatchJob) *wire.Forecast {
	b.Helper()
	f, ok := b.Forecast(b.Context(), j)
	if !ok {
		b.Fatal("there is no forecast")
	}
	return f
}

func TestForecastIsWhatASubmittedJobIsPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		if f := b.forecastOf(unsubmitted("u", 4)); f.Start != time.Now().Unix() || len(f.Parts) != 1 ||
			f.Parts[0] != (wire.ForecastPart{Partition: "debug", CPUs: 4, Nodes: "n1"}) {
			t.Errorf("in an empty cluster: %+v", f)
		}
		b.submit(1, 4)
		b.submit(2, 4)
		settle()
		b.want(v1alpha1.StateConfiguring, "")
		held := func(j *v1alpha1.BatchJob) {
			j.Spec.Job.Hold = "user"
			j.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 1}}
		}
		f := b.forecastOf(unsubmitted("u", 4, held))
		b.submit(3, 4)
		settle()
		if p, _ := b.Planned(3); f.Start == 0 || f.Start != p.Start.Unix() {
			t.Errorf("forecast %d, planned %d", f.Start, p.Start.Unix())
		}
		if f = b.forecastOf(unsubmitted("u", 5)); f.Start != 0 || f.Reason == "" {
			t.Errorf("a job that can never start: %+v", f)
		}
		if _, known := b.cluster.Job(1<<53 - 1); known || b.wrote != 1 {
			t.Errorf("%d placements written", b.wrote)
		}
	})
}

func TestForecastOfComponents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		other := aNode()
		other.Name = "n2"
		fake.Feed(b.cluster, other)
		defer b.run()()
		b.submit(1, 3)
		b.submit(2, 2) // on the other node, as components will be
		settle()
		two := unsubmitted("u", 1, func(j *v1alpha1.BatchJob) {
			further := j.Spec.Job
			further.Het, further.Partitions = &job.Het{Offset: 1, Size: 2}, []string{"debug"}
			further.Shape.CPUsPerTask = 3
			j.Spec.Job.Het, j.Spec.Components = &job.Het{Size: 2}, []job.Job{further}
		})
		f := b.forecastOf(two)
		one, _ := b.cluster.Job(1)
		if len(f.Parts) != 2 || f.Parts[1].CPUs != 3 || f.Parts[1].Partition != "debug" ||
			f.Start < one.Status.StartTime.Add(5*time.Minute).Unix() {
			t.Errorf("%+v, where only one component fits now", f)
		}
	})
}
