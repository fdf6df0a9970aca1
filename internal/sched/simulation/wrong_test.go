package simulation

import (
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/preemption"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
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

// runs starts the script of the job on CPUs 0 and 1 of node n1.
func (s *simulation) runs(b *v1alpha1.BatchJob) {
	k := runKey{b.Spec.JobID, b.Status.Attempt}
	var cpus backfill.CPUSet
	cpus.AddRange(0, 1)
	s.machine.agentsOf(k).started = true
	s.truth.scriptStarted(k, b, map[string]backfill.CPUSet{"n1": cpus})
}

// ends ends the script with that exit code.
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
		s.runs(after(s, "afterok", first))
	}, "with its dependency afterok"},
	"before a task of an array": {func(s *simulation) {
		array, _ := anArray(s)
		s.end(array, 1, v1alpha1.StateFailed)
		s.runs(after(s, "afternotok", array))
	}, "with its dependency afternotok"},
	"after an array that did not fail": {func(s *simulation) {
		array, task := anArray(s)
		s.end(task, 0, v1alpha1.StateCompleted)
		s.end(array, 0, v1alpha1.StateCompleted)
		s.runs(after(s, "afternotok", array))
	}, "with its dependency afternotok"},
	"before the other job starts": {func(s *simulation) {
		b := aJob(s, func(b *v1alpha1.BatchJob) { b.Status = v1alpha1.BatchJobStatus{} })
		s.api.put(b)
		s.runs(after(s, "after", b))
	}, "with its dependency after"},
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
	"cancelled without a request": {func(s *simulation) {
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
	"a job is created again": {func(s *simulation) {
		b := aJob(s, func(b *v1alpha1.BatchJob) { b.UID = "first" })
		s.api.put(b)
		b.UID = "second"
		s.api.put(b)
	}, "has another object"},
	"a job in the pods of another user": {func(s *simulation) {
		s.reuses(func(b *v1alpha1.BatchJob) { b.Spec.User = "b" })
	}, "of user b was placed in the pods of 1-1 of user a"},
	"a job in the pods of another partition": {func(s *simulation) {
		s.reuses(func(b *v1alpha1.BatchJob) { b.Status.Partition = classScrap })
	}, "was placed in the pods of 1-1 of partition debug"},
	"a job in pods on other CPUs": {func(s *simulation) {
		s.reuses(func(b *v1alpha1.BatchJob) { b.Status.Allocation.Nodes[0].CPUIDs = "2-3" })
	}, "which have other CPUs"},
	"a job in other pods than it would get": {func(s *simulation) {
		s.reuses(func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.WorkDir = "/scratch" })
	}, "which are not as its own"},
	"two jobs in the same pods": {func(s *simulation) {
		s.reuses(nil)
		s.reuses(nil)
	}, "jobs 4 and 2 run in the pods of 1-1"},
	"a script without a pod": {func(s *simulation) {
		s.runs(aJob(s, nil))
	}, "began without a pod"},
	"an agent receives the job of another pod": {func(s *simulation) {
		b := aJob(s, nil)
		s.api.put(b)
		s.truth.podReused(runKey{b.Spec.JobID + 1, 1}, runKey{b.Spec.JobID, 1})
	}, "the agent of 2-1 received 1-1"},
	"a job is stuck": {func(s *simulation) {
		s.api.put(aJob(s, nil))
		s.truth.unsettled()
	}, "is stuck"},
	"a script is left": {func(s *simulation) {
		s.runs(aJob(s, nil))
		s.truth.unsettled()
	}, "left: script of"},
	"a job without a record": {func(s *simulation) {
		s.truth.ended = []ended{{id: 7, state: v1alpha1.StateFailed}}
		s.truth.compareRecords(nil)
	}, "run 0 of job 7 has 0 records"},
	"an earlier run without a record": {func(s *simulation) {
		s.truth.ended = []ended{{id: 7, restarts: 1, state: v1alpha1.StateFailed}}
		s.truth.compareRecords([]status.Record{{ID: 7, Restarts: 1, State: v1alpha1.StateFailed}})
	}, "run 0 of job 7 has 0 records"},
	"an earlier run whose record has not ended": {func(s *simulation) {
		s.truth.ended = []ended{{id: 7, restarts: 1, state: v1alpha1.StateFailed}}
		s.truth.compareRecords([]status.Record{
			{ID: 7, State: v1alpha1.StateRunning}, {ID: 7, Restarts: 1, State: v1alpha1.StateFailed, End: 1},
		})
	}, "run 0 of job 7 has ended, and its record is RUNNING"},
	"a job with two records": {func(s *simulation) {
		s.truth.ended = []ended{{id: 7, state: v1alpha1.StateFailed}}
		s.truth.compareRecords([]status.Record{
			{ID: 7, UID: "a", State: v1alpha1.StateFailed}, {ID: 7, UID: "b", State: v1alpha1.StateFailed},
		})
	}, "run 0 of job 7 has 2 records"},
	"a record with another state": {func(s *simulation) {
		s.truth.ended = []ended{{id: 7, state: v1alpha1.StateFailed}}
		s.truth.compareRecords([]status.Record{{ID: 7, State: v1alpha1.StateRunning}})
	}, "its record is RUNNING"},
	"a process writes without its lease": {func(s *simulation) {
		s.leader = s.start()
		defer func() { s.leader.crash() }()
		p := s.leader
		p.transport = transport(p.send) // without the fence
		s.loseLease()
		s.lead()
		defer p.crash()
		p.running.Go(func() { _, _ = p.nextID(p.ctx) })
		for len(p.pending()) == 0 {
			runtime.Gosched()
		}
		s.answer(p.pending()[0])
	}, "wrote without its lease"},
	"a component starts without the others": {func(s *simulation) {
		s.runs(aComponent(s, nil))
	}, "1 of 2 components exist"},
	"a component starts and another waits": {func(s *simulation) {
		first := aComponent(s, nil)
		s.api.put(aComponent(s, func(b *v1alpha1.BatchJob) {
			b.Spec.Origin = &v1alpha1.Origin{JobID: first.Spec.JobID}
			b.Status = v1alpha1.BatchJobStatus{}
		}))
		s.runs(first)
	}, "began without component"},
	"a component completes before the first one": {func(s *simulation) {
		first := aComponent(s, nil)
		second := aComponent(s, func(b *v1alpha1.BatchJob) {
			b.Spec.Origin, b.Spec.Job.Het.Offset = &v1alpha1.Origin{JobID: first.Spec.JobID}, 1
		})
		s.becomes(second, v1alpha1.StateCompleted)
	}, "became COMPLETED"},
	"a job of the wrong class is preempted": {func(s *simulation) {
		s.preempts(aJob(s, nil), preemption.ModeRequeue)
	}, "was preempted by job"},
	"a job is preempted in the wrong way": {func(s *simulation) {
		s.preempts(aJob(s, inClass(classSpare)), preemption.ModeCancel)
	}, "was preempted with CANCEL"},
	"a job is preempted twice": {func(s *simulation) {
		b := aJob(s, inClass(classSpare))
		s.preempts(b, preemption.ModeRequeue)
		s.api.put(b)
		s.preempts(b, preemption.ModeRequeue)
	}, "was preempted twice"},
	"a job that is preempted to be cancelled runs again": {func(s *simulation) {
		b := aJob(s, inClass(classScrap))
		*b.Spec.Job.Batch.Requeue = true
		s.runs(b)
		s.preempts(b, preemption.ModeCancel)
		s.ends(b, 0)
		b.Status.Attempt++
		s.runs(b)
	}, "without a cause"},
	"a job that is preempted to be requeued is cancelled": {func(s *simulation) {
		b := aJob(s, inClass(classSpare))
		*b.Spec.Job.Batch.Requeue = true
		s.preempts(b, preemption.ModeRequeue)
		s.becomes(b, v1alpha1.StatePreempted)
	}, "became PREEMPTED"},
	"a job on the node of a reservation": {func(s *simulation) {
		s.reserves("n1", 0)
		s.placed("")
	}, "on a node of reservation r1"},
	"a job on the node of a reservation that begins soon": {func(s *simulation) {
		s.reserves("n1", 5*time.Minute)
		s.placed("")
	}, "on a node of reservation r1"},
	"a job before its reservation": {func(s *simulation) {
		s.reserves("n1", time.Hour)
		s.placed("r1")
	}, "outside of its reservation"},
	"a job of a reservation on another node": {func(s *simulation) {
		s.reserves("n2", 0)
		s.placed("r1")
	}, "runs on other nodes"},
}

// aComponent returns a running component of a heterogeneous job of two.
func aComponent(s *simulation, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := aJob(s, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Het = &job.Het{Size: 2}
		b.Status.Allocation.Nodes[0].Address = "n1:1"
	})
	if change != nil {
		change(b)
	}
	s.api.put(b)
	return b
}

func inClass(name string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.QOS = name }
}

// preempts stores the job, and then that it is preempted by one of the class urgent.
func (s *simulation) preempts(b *v1alpha1.BatchJob, mode string) {
	s.preemptType = preemptByQOS
	by := aJob(s, inClass(classUrgent))
	by.Status = v1alpha1.BatchJobStatus{}
	s.api.put(by)
	s.api.put(b)
	n := b.DeepCopy()
	n.Status.Preempt = &v1alpha1.Preemption{By: by.Spec.JobID, Mode: mode}
	s.api.put(n)
}

// reserves gives the leader a reservation of a node for an hour.
func (s *simulation) reserves(node string, in time.Duration) {
	s.leader = &process{reservations: map[string]reservation{"r1": {
		v1alpha1.ReservationSpec{StartTime: metav1.NewTime(time.Now().Add(in)), Duration: 60, Nodes: node},
		time.Now().Add(-time.Hour),
	}}}
}

// placed places a job for ten minutes on n1.
func (s *simulation) placed(reservation string) {
	b := aJob(s, func(b *v1alpha1.BatchJob) {
		now := metav1.NewMicroTime(time.Now())
		b.Spec.Job.Reservation, b.Status.StartTime, b.Status.TimeLimit = reservation, &now, 10
	})
	old := b.DeepCopy()
	old.Status = v1alpha1.BatchJobStatus{}
	s.api.put(old)
	s.api.put(b)
}
