package keeper

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t)
	return &m
}

// aJob is job 7 in its second attempt, on n1 and n2, in the given state since t0.
func aJob(state string, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{
		Spec: v1alpha1.BatchJobSpec{JobID: 7},
		Status: v1alpha1.BatchJobStatus{
			State: state, Attempt: 2, StartTime: at(t0), TimeLimit: 10,
			Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{
				{Name: "n1", Address: "a:1"}, {Name: "n2", Address: "b:1"}}},
		},
	}
	if state == v1alpha1.StateConfiguring {
		for i := range b.Status.Allocation.Nodes {
			b.Status.Allocation.Nodes[i].Address = ""
		}
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func cancelled(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }
func requeued(b *v1alpha1.BatchJob)  { b.Spec.Requeues = 1 }
func noRequeue(b *v1alpha1.BatchJob) { no := false; b.Spec.Job.Batch.Requeue = &no }
func noKill(b *v1alpha1.BatchJob)    { b.Spec.Job.Batch.NoKill = true }
func preempted(mode string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Status.Preempt = &v1alpha1.Preemption{By: 9, Mode: mode, Due: *at(t0.Add(time.Minute))}
	}
}
func suspend(b *v1alpha1.BatchJob) { b.Spec.Suspend = true }
func killInvalid(yes bool) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.KillOnInvalidDep = &yes }
}

// deadline is so many minutes after t0, for a job of that limit and least time.
func deadline(in int, limit, least int32) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Time = job.Time{Deadline: t0.Add(time.Duration(in) * time.Minute).Unix(), Limit: limit, Min: least}
	}
}
func completing(final string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.Final, b.Status.EndTime = final, at(t0) }
}

func pod(index int, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p" + strconv.Itoa(index), UID: types.UID(strconv.Itoa(index)),
			Labels:      map[string]string{wire.LabelAttempt: "2"},
			Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
		},
		Spec:   corev1.PodSpec{NodeName: "n" + strconv.Itoa(index+1)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// ended is a pod whose container left code, reason and message.
func ended(code int32, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}
	}
}

func reported(r wire.Report) func(*corev1.Pod) {
	text, _ := json.Marshal(r)
	return ended(r.Status, "Error", string(text))
}

// missed is a batch host whose script failed at t0, lostFor after node was lost.
func missed(node string, lostFor time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		reported(wire.Report{Kind: wire.ReportEnded, Status: 1, LostNode: node, LostFor: int64(lostFor)})(p)
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(t0)
	}
}

func refusedByKubelet(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu"
}

func evictedPod(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0} }

func unschedulableSince(t time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(t)}}
	}
}

func pods(p ...*corev1.Pod) []*corev1.Pod { return p }

var rules = Rules{KillWait: 30 * time.Second, MinJobAge: 5 * time.Minute,
	StartTimeout: time.Minute, PullTimeout: 10 * time.Minute, Requeue: true,
	RequeueExit: array.Set{13, 14}, RequeueExitHold: array.Set{14, 15}}

func TestDecide(t *testing.T) {
	created := Memory{Attempt: 2, Created: true}
	terminatedMem := Memory{Attempt: 2, Created: true, Terminated: true}
	swept := Memory{Attempt: 2, Swept: true}
	tests := []struct {
		name    string
		job     *v1alpha1.BatchJob
		pods    []*corev1.Pod
		after   time.Duration // since t0
		lost    string
		down    string
		needed  bool
		expires time.Duration // since t0; 0: never
		memory  Memory
		verdict string
		want    Kind
		final   string
		held    bool
		wake    time.Duration // since t0; 0: none
	}{
		{name: "a waiting job waits", job: &v1alpha1.BatchJob{}, want: Wait},
		{name: "a cancelled waiting job ends", job: aJob("", cancelled), want: End, final: "CANCELLED"},

		{name: "it ends when its dependency cannot be met", job: aJob("", killInvalid(true)), verdict: "DependencyNeverSatisfied", want: End, final: "CANCELLED"},
		{name: "or goes on waiting", job: aJob(""), verdict: "DependencyNeverSatisfied", want: Wait},
		{name: "it ends when its deadline cannot be kept", job: aJob("", deadline(20, 10, 0)), after: 10 * time.Minute, want: End, final: "DEADLINE"},
		{name: "it waits as long as it can", job: aJob("", deadline(20, 10, 0)), want: Wait, wake: 10 * time.Minute},
		{name: "a shorter time may do", job: aJob("", deadline(20, 10, 5)), after: 10 * time.Minute, want: Wait, wake: 15 * time.Minute},
		{name: "a running job past its deadline", job: aJob("RUNNING", deadline(5, 10, 0)), pods: pods(pod(0), pod(1)), after: 5 * time.Minute, want: End, final: "DEADLINE"},
		{name: "a preempted job is told", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), want: Warn, wake: time.Minute},
		{name: "and has its grace", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), memory: Memory{Attempt: 2, Warned: true}, want: Wait, wake: time.Minute},
		{name: "and goes back", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PENDING"},
		{name: "or not", job: aJob("RUNNING", preempted("REQUEUE"), noRequeue), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PREEMPTED"},
		{name: "or is cancelled", job: aJob("RUNNING", preempted("CANCEL")), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PREEMPTED"},
		{name: "a node set down", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1)), down: "n2", want: End, final: "NODE_FAIL"},
		{name: "a node set down and requeue", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), down: "n2", want: End, final: "PENDING"},
		{name: "a job on it is ended in order", job: aJob("COMPLETING", completing("NODE_FAIL")), pods: pods(pod(0), pod(1)), down: "n1", want: Terminate},
		{name: "a running job is suspended", job: aJob("RUNNING", suspend), pods: pods(pod(0), pod(1)), want: Suspend},
		{name: "which stops its clock", job: aJob("SUSPENDED", suspend), pods: pods(pod(0), pod(1)), after: time.Hour, want: Wait},
		{name: "until it is resumed", job: aJob("SUSPENDED"), pods: pods(pod(0), pod(1)), after: time.Hour, want: Suspend},
		{name: "what it was suspended does not count", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Status.Suspended = 3600 }),
			pods: pods(pod(0), pod(1)), after: time.Hour, want: Wait, wake: 70 * time.Minute},

		{name: "a placed job gets its objects", job: aJob("CONFIGURING"), want: Create},
		{name: "again by a new process", job: aJob("CONFIGURING"), memory: Memory{Attempt: 1, Created: true}, want: Create},
		{name: "then it has a minute", job: aJob("CONFIGURING"), memory: created, want: Wait, wake: time.Minute},
		{name: "and is given back", job: aJob("CONFIGURING"), memory: created, after: time.Minute, want: End, final: "PENDING"},
		{name: "images take longer", job: aJob("CONFIGURING"), memory: created, after: time.Minute, want: Wait, wake: 10 * time.Minute,
			pods: pods(pod(0, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
			}))},
		{name: "a kubelet's refusal gives it back", job: aJob("CONFIGURING"), memory: created,
			pods: pods(pod(0), pod(1, refusedByKubelet)), want: End, final: "PENDING"},
		{name: "the agent's refusal does not", job: aJob("CONFIGURING"), memory: created,
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportFailed}))), want: End, final: "FAILED"},
		{name: "a refusal by kube-scheduler has 10 s", job: aJob("CONFIGURING"), memory: created, after: 9 * time.Second,
			pods: pods(pod(0, unschedulableSince(t0))), want: Wait, wake: 10 * time.Second},
		{name: "and no more", job: aJob("CONFIGURING"), memory: created, after: 10 * time.Second,
			pods: pods(pod(0, unschedulableSince(t0))), want: End, final: "PENDING"},
		{name: "a node lost before the start", job: aJob("CONFIGURING", noRequeue), memory: created, lost: "n2", want: End, final: "PENDING"},
		{name: "a placed job is cancelled", job: aJob("CONFIGURING", cancelled), want: End, final: "CANCELLED"},
		{name: "a placed job is requeued", job: aJob("CONFIGURING", requeued), want: End, final: "PENDING"},

		{name: "a job runs until its limit", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "not a moment longer", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), after: 10 * time.Minute, want: End, final: "TIMEOUT"},
		{name: "or the end of its reservation", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), expires: 5 * time.Minute, want: Wait, wake: 5 * time.Minute},
		{name: "which ends it", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), expires: 5 * time.Minute, after: 5 * time.Minute, want: End, final: "TIMEOUT"},
		{name: "or for ever", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Status.TimeLimit = job.Unlimited }),
			pods: pods(pod(0), pod(1)), after: 1e6 * time.Second, want: Wait},
		{name: "it is cancelled", job: aJob("RUNNING", cancelled), pods: pods(pod(0), pod(1)), want: End, final: "CANCELLED"},
		{name: "it is deleted", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: t0} }),
			pods: pods(pod(0), pod(1)), want: End, final: "CANCELLED"},
		{name: "it is requeued", job: aJob("RUNNING", requeued), pods: pods(pod(0), pod(1)), want: End, final: "PENDING"},
		{name: "its batch host ended well", job: aJob("RUNNING"), want: End, final: "COMPLETED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded})), pod(1))},
		{name: "its batch host ended badly", job: aJob("RUNNING"), want: End, final: "FAILED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 3})), pod(1))},
		{name: "without a word", job: aJob("RUNNING"), want: End, final: "FAILED", pods: pods(pod(0, ended(137, "Error", "")), pod(1))},
		{name: "for want of memory", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY", pods: pods(pod(0, ended(137, "OOMKilled", "")), pod(1))},
		{name: "for want of memory elsewhere", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY", pods: pods(pod(0), pod(1, ended(137, "OOMKilled", "")))},
		{name: "its end counts before a cancel", job: aJob("RUNNING", cancelled), want: End, final: "COMPLETED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded})), pod(1))},
		{name: "evicted: back to the queue", job: aJob("RUNNING"), want: End, final: "PENDING", pods: pods(pod(0, evictedPod), pod(1))},
		{name: "evicted: or failed", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL", pods: pods(pod(0, evictedPod), pod(1))},
		{name: "deleted behind our back", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15}), deleted), pod(1))},
		{name: "a lost node", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1)), lost: "n2", want: End, final: "NODE_FAIL"},
		{name: "a lost node and requeue", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), lost: "n2", want: End, final: "PENDING"},
		{name: "a lost node that is not missed", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1)), lost: "n2", want: Wait, wake: 10 * time.Minute},
		{name: "nor one that was set down, of which the pods go", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1)), down: "n2", want: Drop},
		{name: "once", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1, deleted)), down: "n2", want: Wait, wake: 10 * time.Minute},
		{name: "nor a pod that vanished", job: aJob("RUNNING", noKill), pods: pods(pod(0)), want: Wait, wake: 10 * time.Minute},
		{name: "nor an agent that ended", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1, ended(1, "Error", ""))), want: Wait, wake: 10 * time.Minute},
		{name: "the batch host is always missed", job: aJob("RUNNING", noKill, noRequeue), pods: pods(pod(0), pod(1)), lost: "n1", want: End, final: "NODE_FAIL"},
		{name: "a limit changed on the way", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 5 }), pods: pods(pod(0), pod(1)), want: Adjust},
		{name: "a pod vanished", job: aJob("RUNNING", noRequeue), pods: pods(pod(0)), want: End, final: "NODE_FAIL"},
		{name: "a script fails when a node does not answer: its verdict is awaited", job: aJob("RUNNING", noRequeue),
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1)), after: 9 * time.Second, want: Wait, wake: 50 * time.Second},
		{name: "the node is lost", job: aJob("RUNNING", noRequeue), lost: "n2", want: End, final: "NODE_FAIL",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1))},
		{name: "the node is lost: back to the queue", job: aJob("RUNNING"), lost: "n2", want: End, final: "PENDING",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1))},
		{name: "its agent ended", job: aJob("RUNNING"), want: End, final: "PENDING",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(137, "Error", "")))},
		{name: "for want of memory there", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(137, "OOMKilled", "")))},
		{name: "swept with the batch host: no verdict", job: aJob("RUNNING"), want: Wait, wake: 50 * time.Second,
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(0, "", ""), deleted))},
		{name: "the node is well", job: aJob("RUNNING"), after: 50 * time.Second, want: End, final: "FAILED",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1))},
		{name: "it was long ago", job: aJob("RUNNING"), want: End, final: "FAILED", pods: pods(pod(0, missed("n2", time.Hour)), pod(1))},
		{name: "it is none of the job's", job: aJob("RUNNING"), want: End, final: "FAILED", pods: pods(pod(0, missed("n9", 0)), pod(1))},
		{name: "it is not missed", job: aJob("RUNNING", noKill), want: End, final: "FAILED", pods: pods(pod(0, missed("n2", 0)), pod(1))},
		{name: "a script fails that is to be requeued", job: aJob("RUNNING", requeued), want: End, final: "PENDING",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15})), pod(1))},
		{name: "a script fails with a code that asks for another run", job: aJob("RUNNING"), want: End, final: "PENDING",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 13})), pod(1))},
		{name: "or would, but is not to be requeued", job: aJob("RUNNING", noRequeue), want: End, final: "FAILED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 13})), pod(1))},
		{name: "or asks for attention", job: aJob("RUNNING"), want: End, final: "PENDING", held: true,
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 15})), pod(1))},
		{name: "or asks for nothing", job: aJob("RUNNING"), want: End, final: "FAILED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 16})), pod(1))},
		{name: "a script fails that is cancelled", job: aJob("RUNNING", cancelled), want: End, final: "CANCELLED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15})), pod(1))},
		{name: "the batch host's pod is told to end", job: aJob("RUNNING"), want: End, final: "PENDING",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15, Stopped: true})), pod(1))},
		{name: "an agent ended", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1, ended(0, "", ""))), want: End, final: "NODE_FAIL"},

		{name: "a job that ended is swept", job: aJob("COMPLETING", completing("COMPLETED")), pods: pods(pod(0), pod(1)), want: Sweep},
		{name: "a cancelled one is ended by its agent", job: aJob("COMPLETING", completing("CANCELLED")), pods: pods(pod(0), pod(1)), want: Terminate},
		{name: "which has its time", job: aJob("COMPLETING", completing("CANCELLED")), memory: terminatedMem,
			pods: pods(pod(0), pod(1)), want: Wait, wake: 35 * time.Second},
		{name: "and no more", job: aJob("COMPLETING", completing("CANCELLED")), memory: terminatedMem, after: 35 * time.Second,
			pods: pods(pod(0), pod(1)), want: Sweep},
		{name: "an ended batch host is not waited for", job: aJob("COMPLETING", completing("TIMEOUT")), memory: terminatedMem,
			pods: pods(pod(0, ended(0, "", "")), pod(1)), want: Sweep},
		{name: "nor one that was never welcomed", pods: pods(pod(0), pod(1)), want: Sweep,
			job: aJob("CONFIGURING", completing("CANCELLED"), func(b *v1alpha1.BatchJob) { b.Status.State = "COMPLETING" })},
		{name: "nor one on a lost node", job: aJob("COMPLETING", completing("PENDING")), pods: pods(pod(0), pod(1)), lost: "n1", want: Sweep},
		{name: "pods that are going are waited for", job: aJob("COMPLETING", completing("COMPLETED")), memory: swept,
			pods: pods(pod(0, deleted), pod(1, deleted)), want: Wait, wake: killMargin},
		{name: "unless their node is lost", job: aJob("COMPLETING", completing("COMPLETED")), memory: swept, lost: "n2",
			pods: pods(pod(0, ended(0, "", "")), pod(1, deleted)), want: Sweep, wake: killMargin},
		{name: "nothing runs any more", job: aJob("COMPLETING", completing("COMPLETED")), memory: swept,
			pods: pods(pod(0, ended(0, "", "")), pod(1, ended(0, "", ""), deleted)), want: Finish},

		{name: "a job that is over is kept for a while", job: aJob("COMPLETED", completing("")), want: Wait, wake: 5 * time.Minute},
		{name: "and no longer", job: aJob("FAILED", completing("")), after: 5 * time.Minute, want: Delete},
		{name: "unless somebody waits for it", job: aJob("FAILED", completing("")), after: 5 * time.Minute, needed: true, want: Wait, wake: 6 * time.Minute},
		{name: "it may be requeued", job: aJob("COMPLETED", completing(""), requeued), want: Requeue},
		{name: "but not when it was cancelled, too", job: aJob("CANCELLED", completing(""), requeued, cancelled), want: Wait, wake: 5 * time.Minute},
		{name: "or deleted", job: aJob("COMPLETED", func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: t0} }), want: Release},
	}
	unstored := tests[:0:0]
	for _, tt := range tests {
		if tt.want == Delete || tt.want == Release {
			tt.name, tt.want, tt.wake = tt.name+", unstored", Wait, tt.after+unstoredPause
			unstored = append(unstored, tt)
		}
	}
	for _, tt := range append(tests, unstored...) {
		t.Run(tt.name, func(t *testing.T) {
			var expires time.Time
			if tt.expires != 0 {
				expires = t0.Add(tt.expires)
			}
			a := Decide(Facts{Expires: expires, Unstored: strings.Contains(tt.name, "unstored"), Job: tt.job, Pods: tt.pods, Now: t0.Add(tt.after), Rules: rules, Needed: tt.needed,
				Memory: tt.memory, Verdict: tt.verdict, Lost: func(n string) bool { return n == tt.lost }, Down: func(n string) bool { return n == tt.down }})
			if a.Kind != tt.want || a.Outcome.Final != tt.final || a.Outcome.Hold != tt.held {
				t.Fatalf("got action %d %+v, want %d %s", a.Kind, a.Outcome, tt.want, tt.final)
			}
			if got := a.Wake; !got.IsZero() && got.Sub(t0) != tt.wake || got.IsZero() && tt.wake != 0 {
				t.Errorf("wakes at %v, want %v", got, tt.wake)
			}
			for _, k := range a.Kill {
				if k.Force != (k.Pod.Spec.NodeName == tt.lost) {
					t.Errorf("pod on %s: force %v", k.Pod.Spec.NodeName, k.Force)
				}
			}
		})
	}
}

func TestFinishedGoesBackToTheQueueEmptyHanded(t *testing.T) {
	b := aJob("COMPLETING", completing("PENDING"))
	b.Spec.Requeues = 1
	s := b.Status.DeepCopy()
	s.Requeues = 1
	finished(b, s, t0, 0)
	if s.State != "PENDING" || s.Allocation != nil || s.StartTime != nil || s.Restarts != 1 || s.EligibleTime != nil || s.Attempt != 2 {
		t.Errorf("%+v", s)
	}
	s = b.Status.DeepCopy()
	s.Requeues = 1
	finished(b, s, t0, 3)
	if s.EligibleTime == nil || !s.EligibleTime.Time.Equal(t0.Add(4*time.Second)) {
		t.Errorf("the third start that failed: %+v", s.EligibleTime)
	}
	cancelled(b)
	s = b.Status.DeepCopy()
	finished(b, s, t0, 0)
	if s.State != "CANCELLED" || s.Allocation == nil || s.Requeues != 1 {
		t.Errorf("a job cancelled on its way back: %+v", s)
	}
}

func TestFromReport(t *testing.T) {
	for _, tt := range []struct {
		r      wire.Report
		final  string
		exit   v1alpha1.ExitCode
		reason string
	}{
		{wire.Report{Kind: wire.ReportEnded}, "COMPLETED", v1alpha1.ExitCode{}, ""},
		{wire.Report{Kind: wire.ReportEnded, Status: 3}, "FAILED", v1alpha1.ExitCode{Status: 3}, "NonZeroExitCode"},
		{wire.Report{Kind: wire.ReportEnded, Signal: 9}, "FAILED", v1alpha1.ExitCode{Signal: 9}, "NonZeroExitCode"},
		{wire.Report{Kind: wire.ReportEnded, OutOfMemory: true}, "OUT_OF_MEMORY", v1alpha1.ExitCode{Signal: 125}, "OutOfMemory"},
		{wire.Report{Kind: wire.ReportFailed}, "FAILED", v1alpha1.ExitCode{Status: 1}, "JobLaunchFailure"},
	} {
		o := FromReport(tt.r)
		if o.Final != tt.final || *o.Exit != tt.exit || o.Reason != tt.reason {
			t.Errorf("%+v: %+v %+v", tt.r, o, o.Exit)
		}
	}
}
