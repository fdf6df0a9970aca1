package simulation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// wrongHistory is something that must never happen, and what is reported then.
type wrongHistory struct {
	happens func(*simulation)
	want    string
}

// aJob returns a running job of node n1 with two CPUs.
func aJob(s *simulation, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	requeue := false
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	b.Spec.JobID = s.nextID()
	b.Name = "j-" + runKey{b.Spec.JobID, 1}.String()
	b.Spec.Job.Batch.Requeue = &requeue
	b.Status.State, b.Status.Attempt = v1alpha1.StateRunning, 1
	b.Status.Allocation = &v1alpha1.Allocation{
		Nodes: []v1alpha1.NodeAllocation{{Name: "n1", Node: "n1", CPUIDs: "0-1"}},
	}
	if change != nil {
		change(b)
	}
	return b
}

// runs lets the script of the job start on CPUs 0 and 1 of node n1.
func (s *simulation) runs(b *v1alpha1.BatchJob) {
	k := runKey{b.Spec.JobID, b.Status.Attempt}
	var cpus backfill.CPUSet
	cpus.AddRange(0, 1)
	s.machine.agentsOf(k).started = true
	s.truth.scriptStarted(k, b, map[string]backfill.CPUSet{"n1": cpus})
}

// ends lets the script end with that exit code.
func (s *simulation) ends(b *v1alpha1.BatchJob, status int32) {
	k := runKey{b.Spec.JobID, b.Status.Attempt}
	a := s.machine.agentsOf(k)
	a.ended, a.status = true, status
	s.truth.scriptEnded(k)
}

// becomes stores the job in another state.
func (s *simulation) becomes(b *v1alpha1.BatchJob, state string) {
	n := b.DeepCopy()
	n.Status.State = state
	s.api.put(n)
}

var wrongHistories = map[string]wrongHistory{
	"an attempt runs twice": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.ends(b, 0)
		s.runs(b)
	}, "ran twice"},
	"two attempts at the same time": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		b.Status.Attempt++
		s.runs(b)
	}, "began while another of the job ran"},
	"a job runs again that must not": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.ends(b, 0)
		b.Status.Attempt++
		s.runs(b)
	}, "must not be requeued"},
	"a job runs again without a cause": {func(s *simulation) {
		b := aJob(s, func(b *v1alpha1.BatchJob) { *b.Spec.Job.Batch.Requeue = true })
		s.runs(b)
		s.ends(b, 0)
		b.Status.Attempt++
		s.runs(b)
	}, "without a cause"},
	"two scripts share CPUs": {func(s *simulation) {
		s.runs(aJob(s, nil))
		s.runs(aJob(s, nil))
	}, "share CPUs of n1"},
	"two jobs hold CPUs": {func(s *simulation) {
		s.api.put(aJob(s, nil))
		s.api.put(aJob(s, nil))
	}, "hold CPUs"},
	"before the begin time": {func(s *simulation) {
		s.runs(aJob(s, func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Begin = time.Now().Add(time.Hour).Unix() }))
	}, "before its begin time"},
	"before the dependency": {func(s *simulation) {
		first := aJob(s, nil)
		s.api.put(first)
		s.ends(first, 1)
		s.becomes(first, v1alpha1.StateFailed)
		s.runs(aJob(s, func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: first.Spec.JobID}}
		}))
	}, "with its dependency afterok"},
	"a final state changes": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.ends(b, 0)
		s.becomes(b, v1alpha1.StateCompleted)
		s.becomes(b, v1alpha1.StateRunning)
	}, "was COMPLETED and became"},
	"completed, and never ran": {func(s *simulation) {
		s.becomes(aJob(s, nil), v1alpha1.StateCompleted)
	}, "became COMPLETED"},
	"completed, and the script failed": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.ends(b, 1)
		s.becomes(b, v1alpha1.StateCompleted)
	}, "became COMPLETED"},
	"cancelled by nobody": {func(s *simulation) {
		s.becomes(aJob(s, nil), v1alpha1.StateCancelled)
	}, "became CANCELLED"},
	"a time limit too early": {func(s *simulation) {
		b := aJob(s, func(b *v1alpha1.BatchJob) {
			now := metav1.NewMicroTime(time.Now())
			b.Status.StartTime, b.Status.TimeLimit = &now, 5
		})
		s.runs(b)
		s.becomes(b, v1alpha1.StateTimeout)
	}, "became TIMEOUT"},
	"a node failed, and none did": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.becomes(b, v1alpha1.StateNodeFail)
	}, "became NODE_FAIL"},
	"the job is over and its script runs": {func(s *simulation) {
		b := aJob(s, nil)
		s.runs(b)
		s.truth.of(b.Spec.JobID).cancelled = true
		s.becomes(b, v1alpha1.StateCancelled)
	}, "while its script ran"},
	"a job disappears": {func(s *simulation) {
		b := aJob(s, nil)
		s.api.put(b)
		s.api.remove(keyOf(b))
	}, "was removed in state"},
	"a job is stuck": {func(s *simulation) {
		s.api.put(aJob(s, nil))
		s.truth.unsettled()
	}, "is stuck"},
	"a script is left": {func(s *simulation) {
		s.runs(aJob(s, nil))
		s.truth.unsettled()
	}, "left: script of"},
}
