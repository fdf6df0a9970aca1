package decide

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
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// t0 is the time since which jobs are in their state.
var t0 = schedtest.Now

// Short names for the many rows of the tables.
var (
	at           = schedtest.At
	aJob         = schedtest.Attempt
	cancelled    = schedtest.Cancelled
	requeued     = schedtest.Requeued
	noRequeue    = schedtest.NoRequeue
	representing = schedtest.Representing
)

func noKill(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.NoKill = true }
func preempted(mode string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Status.Preempt = &v1alpha1.Preemption{By: 9, Mode: mode, Due: *at(t0.Add(time.Minute))}
	}
}
func suspend(b *v1alpha1.BatchJob) { b.Spec.Suspend = true }
func killInvalid(yes bool) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.KillOnInvalidDep = &yes }
}

// deadline sets a deadline that many minutes after t0, a time limit and a least time.
func deadline(in int, limit, least int32) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Time = job.Time{Deadline: t0.Add(time.Duration(in) * time.Minute).Unix(), Limit: limit, Min: least}
	}
}
func heldByUser(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }
func shortenedFrom(limit int32) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit, b.Status.ShortenedFrom = limit, limit }
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

// ended gives the pod a container that ended with that code, reason and message.
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

// missed makes the pod a batch host whose script failed at t0, lostFor after the node
// was lost.
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

func never(string) bool { return false }

func pods(p ...*corev1.Pod) []*corev1.Pod { return p }

var rules = Rules{KillWait: 30 * time.Second, MinJobAge: 5 * time.Minute,
	StartTimeout: time.Minute, PullTimeout: 10 * time.Minute, Requeue: true,
	RequeueExit: array.Set{13, 14}, RequeueExitHold: array.Set{14, 15}}

func TestDecide(t *testing.T) {
	created := Progress{Attempt: 2, Created: true}
	terminatedMem := Progress{Attempt: 2, Created: true, Terminated: true}
	cleanedUp := Progress{Attempt: 2, CleanedUp: true}
	tests := []struct {
		name     string
		job      *v1alpha1.BatchJob
		pods     []*corev1.Pod
		after    time.Duration // since t0
		lost     string
		silent   string // unreachable, but not lost
		down     string
		awaited  bool
		expires  time.Duration // since t0; 0: never
		progress Progress
		reason   string
		want     Kind
		final    string
		held     bool
		wake     time.Duration // since t0; 0: none
	}{
		{name: "a pending job waits", job: &v1alpha1.BatchJob{}, want: Wait},
		{name: "a cancelled pending job keeps its reason", job: aJob("", cancelled), reason: "BeginTime", want: End, final: "CANCELLED"},
		{name: "a cancelled pending job ends", job: aJob("", cancelled), want: End, final: "CANCELLED"},

		{name: "a pending job ends when its dependency cannot be met", job: aJob("", killInvalid(true)), reason: "DependencyNeverSatisfied", want: End, final: "CANCELLED"},
		{name: "a pending job whose dependency cannot be met may stay", job: aJob(""), reason: "DependencyNeverSatisfied", want: Wait},
		{name: "a pending job ends when it cannot meet its deadline", job: aJob("", deadline(20, 10, 0)), after: 10 * time.Minute, want: End, final: "DEADLINE"},
		{name: "a pending job waits until its latest start", job: aJob("", deadline(20, 10, 0)), want: Wait, wake: 10 * time.Minute},
		{name: "a pending job with a least time waits longer", job: aJob("", deadline(20, 10, 5)), after: 10 * time.Minute, want: Wait, wake: 15 * time.Minute},
		{name: "a held job stays when it cannot meet its deadline", job: aJob("", deadline(20, 10, 0), heldByUser), after: time.Hour, want: Wait},
		{name: "a pending job without a limit needs a minute before its deadline", job: aJob("", deadline(20, 0, 0)), want: Wait, wake: 19 * time.Minute},
		{name: "a running job past its deadline", job: aJob("RUNNING", deadline(5, 10, 0)), pods: pods(pod(0), pod(1)), after: 5 * time.Minute, want: End, final: "DEADLINE"},
		{name: "a preempted job is warned", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), want: WarnPreempted, wake: time.Minute},
		{name: "a warned job has its grace time", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), progress: Progress{Attempt: 2, Warned: true}, want: Wait, wake: time.Minute},
		{name: "a preempted job is requeued after its grace time", job: aJob("RUNNING", preempted("REQUEUE")), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PENDING"},
		{name: "a preempted job that may not be requeued ends", job: aJob("RUNNING", preempted("REQUEUE"), noRequeue), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PREEMPTED"},
		{name: "a job preempted by cancelling ends", job: aJob("RUNNING", preempted("CANCEL")), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PREEMPTED"},
		{name: "a running job waits for an unreachable node", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), silent: "n2", want: Wait, wake: 10 * time.Minute},
		{name: "as does a job that ends there", job: aJob("COMPLETING", completing("CANCELLED")), pods: pods(pod(0), pod(1)), silent: "n1", want: Terminate},
		{name: "a job that has not begun does not", job: aJob("CONFIGURING", noRequeue), progress: created, silent: "n2", want: End, final: "PENDING"},
		{name: "a script that failed without the node did not fail by itself", job: aJob("RUNNING", noRequeue), silent: "n2", want: End, final: "NODE_FAIL",
			pods: pods(pod(0, missed("n2", time.Second)), pod(1))},
		{name: "a node set down", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1)), down: "n2", want: End, final: "NODE_FAIL"},
		{name: "a node set down and requeue", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), down: "n2", want: End, final: "PENDING"},
		{name: "a job on a node set down is terminated by its agent", job: aJob("COMPLETING", completing("NODE_FAIL")), pods: pods(pod(0), pod(1)), down: "n1", want: Terminate},
		{name: "a running job is suspended", job: aJob("RUNNING", suspend), pods: pods(pod(0), pod(1)), want: Suspend},
		{name: "a suspended job has no time limit", job: aJob("SUSPENDED", suspend), pods: pods(pod(0), pod(1)), after: time.Hour, want: Wait},
		{name: "a suspended job is resumed", job: aJob("SUSPENDED"), pods: pods(pod(0), pod(1)), after: time.Hour, want: Suspend},
		{name: "suspended time does not count", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Status.Suspended = 3600 }),
			pods: pods(pod(0), pod(1)), after: time.Hour, want: Wait, wake: 70 * time.Minute},

		{name: "a placed job gets its objects", job: aJob("CONFIGURING"), want: Create},
		{name: "a new process creates the objects of a placed job again", job: aJob("CONFIGURING"), progress: Progress{Attempt: 1, Created: true}, want: Create},
		{name: "the agents have StartTimeout to report", job: aJob("CONFIGURING"), progress: created, want: Wait, wake: time.Minute},
		{name: "a job whose agents do not report is requeued", job: aJob("CONFIGURING"), progress: created, after: time.Minute, want: End, final: "PENDING"},
		{name: "a job whose node was started again before its container started is requeued", job: aJob("CONFIGURING"), progress: created, after: time.Minute,
			want: End, final: "PENDING", pods: pods(pod(0, func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{}}}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
				p.Status.Conditions = append(p.Status.Conditions,
					corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse})
			}))},
		{name: "a job that is pulling images has PullTimeout", job: aJob("CONFIGURING"), progress: created, after: time.Minute, want: Wait, wake: 10 * time.Minute,
			pods: pods(pod(0, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
			}))},
		{name: "a job that a kubelet refuses is requeued", job: aJob("CONFIGURING"), progress: created,
			pods: pods(pod(0), pod(1, refusedByKubelet)), want: End, final: "PENDING"},
		{name: "a job that its agent refuses fails", job: aJob("CONFIGURING"), progress: created,
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportFailed}))), want: End, final: "FAILED"},
		{name: "a job that kube-scheduler rejects has unschedulableTimeout", job: aJob("CONFIGURING"), progress: created, after: 9 * time.Second,
			pods: pods(pod(0, unschedulableSince(t0))), want: Wait, wake: 10 * time.Second},
		{name: "a job that kube-scheduler rejects for longer is requeued", job: aJob("CONFIGURING"), progress: created, after: 10 * time.Second,
			pods: pods(pod(0, unschedulableSince(t0))), want: End, final: "PENDING"},
		{name: "a job fails whose memory is not enough for its agent", job: aJob("CONFIGURING"), progress: created,
			pods: pods(pod(0, ended(137, "OOMKilled", ""))), want: End, final: "OUT_OF_MEMORY"},
		{name: "a job that loses a node before its start is requeued", job: aJob("CONFIGURING", noRequeue), progress: created, lost: "n2", want: End, final: "PENDING"},
		{name: "a placed job is cancelled", job: aJob("CONFIGURING", cancelled), want: End, final: "CANCELLED"},
		{name: "a placed job is requeued", job: aJob("CONFIGURING", requeued), want: End, final: "PENDING"},

		{name: "a job runs until its time limit", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "a job ends at its time limit", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), after: 10 * time.Minute, want: End, final: "TIMEOUT"},
		{name: "a job runs until the end of its reservation", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), expires: 5 * time.Minute, want: Wait, wake: 5 * time.Minute},
		{name: "a job ends with its reservation", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), expires: 5 * time.Minute, after: 5 * time.Minute, want: End, final: "TIMEOUT"},
		{name: "a job without a time limit runs on", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Status.TimeLimit = job.Unlimited }),
			pods: pods(pod(0), pod(1)), after: 1e6 * time.Second, want: Wait},
		{name: "a running job is cancelled", job: aJob("RUNNING", cancelled), pods: pods(pod(0), pod(1)), want: End, final: "CANCELLED"},
		{name: "a running job is deleted", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: t0} }),
			pods: pods(pod(0), pod(1)), want: End, final: "CANCELLED"},
		{name: "a running job is requeued", job: aJob("RUNNING", requeued), pods: pods(pod(0), pod(1)), want: End, final: "PENDING"},
		{name: "the script succeeds", job: aJob("RUNNING"), want: End, final: "COMPLETED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded})), pod(1))},
		{name: "the script fails", job: aJob("RUNNING"), want: End, final: "FAILED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Status: 3})), pod(1))},
		{name: "the batch host ends without a report", job: aJob("RUNNING"), want: End, final: "FAILED", pods: pods(pod(0, ended(2, "Error", "")), pod(1))},
		{name: "the batch host was started again", job: aJob("RUNNING"), want: End, final: "PENDING", pods: pods(pod(0, ended(255, "Unknown", "")))},
		{name: "the batch host was started again, and the job must not be requeued", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL", pods: pods(pod(0, ended(137, "ContainerStatusUnknown", "")))},
		{name: "the batch host was started again after the report", job: aJob("RUNNING"), want: End, final: "FAILED", pods: pods(pod(0, ended(255, "Unknown", `{"kind":"ended","status":3}`)))},
		{name: "the agent of the batch host is killed", job: aJob("RUNNING"), want: End, final: "PENDING", pods: pods(pod(0, ended(137, "Error", "")))},
		{name: "the agent of a batch host is killed whose job must not be requeued", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL",
			pods: pods(pod(0, ended(137, "Error", "")))},
		{name: "the agent of an salloc is killed", want: End, final: "FAILED", pods: pods(pod(0, ended(137, "Error", ""))),
			job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Client = "salloc" })},
		{name: "the batch host is out of memory", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY", pods: pods(pod(0, ended(137, "OOMKilled", "")), pod(1))},
		{name: "another node is out of memory", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY", pods: pods(pod(0), pod(1, ended(137, "OOMKilled", "")))},
		{name: "the success of the script counts before a cancellation", job: aJob("RUNNING", cancelled), want: End, final: "COMPLETED",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded})), pod(1))},
		{name: "a job whose batch host is evicted is requeued", job: aJob("RUNNING"), want: End, final: "PENDING", pods: pods(pod(0, evictedPod), pod(1))},
		{name: "a job whose batch host is evicted fails if it may not be requeued", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL", pods: pods(pod(0, evictedPod), pod(1))},
		{name: "the pod of the batch host is deleted", job: aJob("RUNNING", noRequeue), want: End, final: "NODE_FAIL",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15}), deleted), pod(1))},
		{name: "a node is lost", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1)), lost: "n2", want: End, final: "NODE_FAIL"},
		{name: "a node of a job that may be requeued is lost", job: aJob("RUNNING"), pods: pods(pod(0), pod(1)), lost: "n2", want: End, final: "PENDING"},
		{name: "a job with --no-kill goes on without a lost node", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1)), lost: "n2", want: Wait, wake: 10 * time.Minute},
		{name: "a job with --no-kill loses its pods on a node set down", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1)), down: "n2", want: DeletePods},
		{name: "pods on a node set down are deleted once", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1, deleted)), down: "n2", want: Wait, wake: 10 * time.Minute},
		{name: "a job with --no-kill goes on without a pod", job: aJob("RUNNING", noKill), pods: pods(pod(0)), want: Wait, wake: 10 * time.Minute},
		{name: "a job with --no-kill goes on without an agent", job: aJob("RUNNING", noKill), pods: pods(pod(0), pod(1, ended(1, "Error", ""))), want: Wait, wake: 10 * time.Minute},
		{name: "a job with --no-kill ends when its batch host is lost", job: aJob("RUNNING", noKill, noRequeue), pods: pods(pod(0), pod(1)), lost: "n1", want: End, final: "NODE_FAIL"},
		{name: "the time limit changes while the job runs", job: aJob("RUNNING", func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 5 }), pods: pods(pod(0), pod(1)), want: UpdateLimit},
		{name: "a job that was placed with a shorter limit keeps it", job: aJob("RUNNING", shortenedFrom(120)), pods: pods(pod(0), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "a job that was placed with a shorter limit than none keeps it", job: aJob("RUNNING", shortenedFrom(job.Unlimited)), pods: pods(pod(0), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "its limit changes while it runs", job: aJob("RUNNING", shortenedFrom(120), func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 5 }), pods: pods(pod(0), pod(1)), want: UpdateLimit},
		{name: "a pod is not known", job: aJob("RUNNING", noRequeue), pods: pods(pod(0)), want: ReadPods},
		{name: "a pod is gone", job: aJob("RUNNING", noRequeue), pods: pods(pod(0)), progress: Progress{Attempt: 2, PodsRead: true}, want: End, final: "NODE_FAIL"},
		{name: "a script fails when a node does not answer, which may be lost", job: aJob("RUNNING", noRequeue),
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1)), after: 9 * time.Second, want: Wait, wake: 50 * time.Second},
		{name: "the node is lost after all", job: aJob("RUNNING", noRequeue), lost: "n2", want: End, final: "NODE_FAIL",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1))},
		{name: "the node is lost after all, and the job may be requeued", job: aJob("RUNNING"), lost: "n2", want: End, final: "PENDING",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1))},
		{name: "the agent of the node that did not answer ended", job: aJob("RUNNING"), want: End, final: "PENDING",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(137, "Error", "")))},
		{name: "the node that did not answer is out of memory", job: aJob("RUNNING"), want: End, final: "OUT_OF_MEMORY",
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(137, "OOMKilled", "")))},
		{name: "a pod deleted with the batch host shows nothing", job: aJob("RUNNING"), want: Wait, wake: 50 * time.Second,
			pods: pods(pod(0, missed("n2", 10*time.Second)), pod(1, ended(0, "", ""), deleted))},
		{name: "the node that did not answer is well", job: aJob("RUNNING"), after: 50 * time.Second, want: End, final: "FAILED",
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
		{name: "the pod of the batch host receives SIGTERM", job: aJob("RUNNING"), want: End, final: "PENDING",
			pods: pods(pod(0, reported(wire.Report{Kind: wire.ReportEnded, Signal: 15, Stopped: true})), pod(1))},
		{name: "an agent ended", job: aJob("RUNNING", noRequeue), pods: pods(pod(0), pod(1, ended(0, "", ""))), want: End, final: "NODE_FAIL"},

		{name: "a job that ended is swept", job: aJob("COMPLETING", completing("COMPLETED")), pods: pods(pod(0), pod(1)), want: CleanUp},
		{name: "a cancelled one is ended by its agent", job: aJob("COMPLETING", completing("CANCELLED")), pods: pods(pod(0), pod(1)), want: Terminate},
		{name: "which has its time", job: aJob("COMPLETING", completing("CANCELLED")), progress: terminatedMem,
			pods: pods(pod(0), pod(1)), want: Wait, wake: 35 * time.Second},
		{name: "a job that kube-scheduler rejects for longer is requeued", job: aJob("COMPLETING", completing("CANCELLED")), progress: terminatedMem, after: 35 * time.Second,
			pods: pods(pod(0), pod(1)), want: CleanUp},
		{name: "an ended batch host is not waited for", job: aJob("COMPLETING", completing("TIMEOUT")), progress: terminatedMem,
			pods: pods(pod(0, ended(0, "", "")), pod(1)), want: CleanUp},
		{name: "nor one that was never welcomed", pods: pods(pod(0), pod(1)), want: CleanUp,
			job: aJob("CONFIGURING", completing("CANCELLED"), func(b *v1alpha1.BatchJob) { b.Status.State = "COMPLETING" })},
		{name: "nor one on a lost node", job: aJob("COMPLETING", completing("PENDING")), pods: pods(pod(0), pod(1)), lost: "n1", want: CleanUp},
		{name: "pods that are going are waited for", job: aJob("COMPLETING", completing("COMPLETED")), progress: cleanedUp,
			pods: pods(pod(0, deleted), pod(1, deleted)), want: Wait, wake: killMargin},
		{name: "unless their node is lost", job: aJob("COMPLETING", completing("COMPLETED")), progress: cleanedUp, lost: "n2",
			pods: pods(pod(0, ended(0, "", "")), pod(1, deleted)), want: CleanUp, wake: killMargin},
		{name: "nothing runs any more", job: aJob("COMPLETING", completing("COMPLETED")), progress: cleanedUp,
			pods: pods(pod(0, ended(0, "", "")), pod(1, ended(0, "", ""), deleted)), want: Finish},

		{name: "a job that is over is kept for a while", job: aJob("COMPLETED", completing("")), want: Wait, wake: 5 * time.Minute},
		{name: "and no longer", job: aJob("FAILED", completing("")), after: 5 * time.Minute, want: Delete},
		{name: "unless another job depends on it", job: aJob("FAILED", completing("")), after: 5 * time.Minute, awaited: true, want: Wait, wake: 6 * time.Minute},
		{name: "also if it is deleted", awaited: true, want: Wait, wake: time.Minute,
			job: aJob("FAILED", completing(""), func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: t0} })},
		{name: "a completed job is requeued", job: aJob("COMPLETED", completing(""), requeued), want: Requeue},
		{name: "a cancelled job is not requeued", job: aJob("CANCELLED", completing(""), requeued, cancelled), want: Wait, wake: 5 * time.Minute},
		{name: "or deleted", job: aJob("COMPLETED", func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: t0} }), want: RemoveFinalizer},
	}
	unstored := tests[:0:0]
	for _, tt := range tests {
		if tt.want == Delete || tt.want == RemoveFinalizer {
			tt.name, tt.want, tt.wake = tt.name+", unstored", Wait, tt.after+unstoredRetry
			unstored = append(unstored, tt)
		}
	}
	for _, tt := range append(tests, unstored...) {
		t.Run(tt.name, func(t *testing.T) {
			var expires time.Time
			if tt.expires != 0 {
				expires = t0.Add(tt.expires)
			}
			a := Next(Facts{ReservationEnds: expires, Unstored: strings.Contains(tt.name, "unstored"), Job: tt.job, Pods: tt.pods, Now: t0.Add(tt.after), Rules: rules, IsAwaited: tt.awaited,
				Progress: tt.progress, PlanReason: tt.reason, Lost: func(n string) bool { return n == tt.lost },
				Unreachable: func(n string) bool { return n == tt.lost || n == tt.silent }, Down: func(n string) bool { return n == tt.down }})
			if a.Kind != tt.want || a.Outcome.Final != tt.final || a.Outcome.Hold != tt.held {
				t.Fatalf("got action %d %+v, want %d %s", a.Kind, a.Outcome, tt.want, tt.final)
			}
			if tt.reason != "" && tt.final == v1alpha1.StateCancelled && a.Outcome.Reason != tt.reason {
				t.Errorf("the reason is %q, want %q", a.Outcome.Reason, tt.reason)
			}
			if got := a.Wake; !got.IsZero() && got.Sub(t0) != tt.wake || got.IsZero() && tt.wake != 0 {
				t.Errorf("wakes at %v, want %v", got, tt.wake)
			}
			for _, k := range a.Deletions {
				if k.Force != (k.Pod.Spec.NodeName == tt.lost) {
					t.Errorf("pod on %s: force %v", k.Pod.Spec.NodeName, k.Force)
				}
			}
		})
	}
}

func TestRequeuedJobHoldsNothing(t *testing.T) {
	b := aJob("COMPLETING", completing("PENDING"))
	b.Spec.Requeues = 1
	s := b.Status.DeepCopy()
	s.Requeues = 1
	SetFinal(b, s, t0, 0)
	if s.State != "PENDING" || s.Allocation != nil || s.StartTime != nil || s.Restarts != 1 || s.EligibleTime != nil || s.Attempt != 2 {
		t.Errorf("%+v", s)
	}
	s = b.Status.DeepCopy()
	s.Requeues = 1
	SetFinal(b, s, t0, 3)
	if s.EligibleTime == nil || !s.EligibleTime.Time.Equal(t0.Add(4*time.Second)) {
		t.Errorf("the third start that failed: %+v", s.EligibleTime)
	}
	cancelled(b)
	s = b.Status.DeepCopy()
	SetFinal(b, s, t0, 0)
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

// Pods that the watch does not deliver are read again, whatever the job does meanwhile.
func TestUnconfirmedPodsAreReadAgain(t *testing.T) {
	for _, state := range []string{"RUNNING", "COMPLETING"} {
		b := aJob(state)
		if state == "COMPLETING" {
			b = aJob(state, completing("COMPLETED"))
		}
		f := Facts{Job: b, Pods: pods(pod(0), pod(1)), Unconfirmed: true, Now: t0, Rules: rules,
			Lost: never, Unreachable: never,
			Progress: Progress{Attempt: b.Status.Attempt, CleanedUp: true, PodsRead: true, PodsReadAt: t0}}
		if a := Next(f); a.Kind == ReadPods || a.Wake.IsZero() || a.Wake.After(t0.Add(readPodsAgain)) {
			t.Errorf("%s, just read: %+v, want to wake after %v", state, a, readPodsAgain)
		}
		f.Now = t0.Add(readPodsAgain)
		if a := Next(f); a.Kind != ReadPods {
			t.Errorf("%s, read %v ago: %+v, want ReadPods", state, readPodsAgain, a)
		}
	}
}
