package planner

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/job"
)

// inQOS sets the QOS of a job; of the two, "high" preempts "low".
func inQOS(name string) func(*job.Job) { return func(j *job.Job) { j.QOS = name } }

func newPreemptingBench(t *testing.T) *bench {
	b := newBench(t)
	high, low := &v1alpha1.QOS{}, &v1alpha1.QOS{}
	high.Name, high.Spec.Preempt, low.Name = "high", []string{"low"}, "low"
	fake.Feed(
		b.cluster,
		high,
		low,
		fake.Settings(v1alpha1.ClusterSpec{PreemptType: "preempt/qos", PreemptMode: "CANCEL"}),
	)
	return b
}

// runs makes a placed job run, as its agents do.
func (b *bench) runs(id int64) {
	b.Helper()
	b.setStatus(id, func(s *v1alpha1.BatchJobStatus) {
		now := metav1.NewMicroTime(time.Now())
		s.State, s.StartTime = v1alpha1.StateRunning, &now
	})
}

// leaving returns the jobs that are preempted for the job by.
func (b *bench) leaving(by int64) (ids []int64) {
	for id := int64(1); ; id++ {
		o, ok := b.cluster.Job(id)
		if !ok {
			return ids
		}
		if p := o.Status.Preempt; p != nil && p.By == by {
			ids = append(ids, id)
		}
	}
}

// As few jobs as necessary are preempted for a job, once. No other job gets their nodes, and the
// next preemptor follows later.
func TestPreemption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPreemptingBench(t)
		defer b.run()()
		for id := int64(1); id <= 4; id++ {
			b.submit(id, 1, inQOS("low"))
		}
		settle()
		for id := int64(1); id <= 4; id++ {
			b.runs(id)
		}
		b.submit(5, 2, inQOS("high"))
		b.submit(6, 1, inQOS("high"))
		time.Sleep(10 * time.Second)
		settle()
		first := b.leaving(5)
		if len(first) != 2 || len(b.leaving(6)) != 0 {
			t.Fatalf("%v are preempted for job 5 and %v for job 6, want two and none", first, b.leaving(6))
		}
		urgent := int64(1 << 31)
		b.submit(7, 1, func(j *job.Job) { j.Priority = &urgent })
		b.end(first[0])
		settle()
		for id := int64(5); id <= 7; id++ {
			if s := b.state(id); s != "" {
				t.Errorf("job %d is %q after the end of one of two victims", id, s)
			}
		}
		b.end(first[1])
		settle()
		if s := b.state(5); s != v1alpha1.StateConfiguring {
			t.Errorf("job 5 is %q after the end of its victims", s)
		}
		time.Sleep(10 * time.Second)
		settle()
		if now := b.leaving(6); len(now) != 1 || len(b.leaving(5)) != 2 {
			t.Errorf("%v are preempted for job 6 and %v for job 5, want one and two", now, b.leaving(5))
		}
	})
}

// Jobs are preempted for one task of an array after the other.
func TestPreemptionByAnArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPreemptingBench(t)
		defer b.run()()
		b.submit(1, 2, inQOS("low"))
		b.submit(2, 2, inQOS("low"))
		settle()
		b.runs(1)
		b.runs(2)
		b.submit(3, 2, inQOS("high"), func(j *job.Job) { j.Array = &job.Array{Spec: "0-1", Max: 2} })
		for _, want := range []int{1, 2} {
			time.Sleep(10 * time.Second)
			settle()
			out := b.leaving(3)
			if len(out) != want {
				t.Fatalf("%v are preempted, want %d", out, want)
			}
			for _, id := range out {
				if b.state(id) == v1alpha1.StateRunning {
					b.end(id)
				}
			}
			settle()
		}
	})
}
