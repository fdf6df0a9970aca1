package decide

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

func unbound(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }

func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

// was gives a completing job its state before.
func was(state string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Status.History = []v1alpha1.StateChange{{State: state}, {State: v1alpha1.StateCompleting}}
	}
}

func TestDecideWorkload(t *testing.T) {
	group, single := representing("group ml/g"), representing("")
	alone := func(b *v1alpha1.BatchJob) { // of one pod, its status is assumed
		single(b)
		b.Spec.Workload.Pods = b.Spec.Workload.Pods[:1]
	}
	tests := []struct {
		name    string
		job     *v1alpha1.BatchJob
		pods    []*corev1.Pod
		after   time.Duration // since t0
		lost    string
		want    Kind
		final   string
		refused string
		wake    time.Duration
	}{
		{name: "a pending workload waits", job: aJob("", group), pods: pods(pod(0, unbound), pod(1, unbound)), want: Wait},
		{name: "a single pod is gone", job: aJob("", single), want: End, final: "CANCELLED"},
		{name: "the pods of a group may come back", job: aJob("", group), want: Wait, wake: replacementTimeout},
		{name: "the pods of a group do not come back", job: aJob("", group), after: replacementTimeout, want: End, final: "CANCELLED"},
		{name: "a workload is cancelled", job: aJob("", group, cancelled), pods: pods(pod(0, unbound), pod(1, unbound)), want: End, final: "CANCELLED"},
		{name: "the pods of a cancelled workload are deleted", job: aJob("CANCELLED", group, completing("")), pods: pods(pod(0, unbound), pod(1, unbound)), want: CleanUp, wake: killMargin},

		{name: "an earlier process had its pod bound", job: aJob("", alone), pods: pods(pod(0)), want: Adopt},
		{name: "an earlier process had its pod bound, which has ended", job: aJob("", alone), pods: pods(pod(0, succeeded)), want: Adopt},
		{name: "an earlier process had the pod of a cancelled job bound", job: aJob("", alone, cancelled), pods: pods(pod(0)), want: End, final: "CANCELLED"},
		{name: "an assumed status is not written at once", job: aJob("CONFIGURING", alone), pods: pods(pod(0, unbound)), want: Wait, wake: podWriteDelay},
		{name: "an assumed placement is written after podWriteDelay", job: aJob("CONFIGURING", alone), pods: pods(pod(0, unbound)), after: podWriteDelay, want: WriteAssumed},
		{name: "an assumed start is written after podWriteDelay", job: aJob("RUNNING", alone), pods: pods(pod(0)), after: podWriteDelay, want: WriteAssumed},

		{name: "not every pod is bound", job: aJob("CONFIGURING", group), pods: pods(pod(0), pod(1, unbound)), want: Wait, wake: time.Minute},
		{name: "every pod is bound", job: aJob("CONFIGURING", group), pods: pods(pod(0), pod(1)), want: MarkRunning},
		{name: "every pod is bound and one has ended", job: aJob("CONFIGURING", group), pods: pods(pod(0, succeeded), pod(1)), want: MarkRunning},
		{name: "not every pod is bound in time", job: aJob("CONFIGURING", group), pods: pods(pod(0), pod(1, unbound)), after: time.Minute, want: End, final: "PENDING"},
		{name: "a rejection before the placement does not count", job: aJob("CONFIGURING", group),
			pods: pods(pod(0), pod(1, unschedulableSince(t0.Add(-time.Hour)))), after: 9 * time.Second, want: Wait, wake: 10 * time.Second},
		{name: "kube-scheduler rejects the node", job: aJob("CONFIGURING", group),
			pods: pods(pod(0), pod(1, unschedulableSince(t0))), after: 10 * time.Second, want: End, final: "PENDING"},
		{name: "its node is lost", job: aJob("CONFIGURING", group), pods: pods(pod(0, unbound), pod(1, unbound)), lost: "n2", want: End, final: "PENDING"},
		{name: "a pod was deleted", job: aJob("CONFIGURING", group), pods: pods(pod(0, unbound), pod(1, unbound, deleted)), want: End, final: "PENDING"},

		{name: "a workload runs until its time limit", job: aJob("RUNNING", group), pods: pods(pod(0), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "a workload runs while one of its pods does", job: aJob("RUNNING", group), pods: pods(pod(0, ended(1, "Error", "")), pod(1)), want: Wait, wake: 10 * time.Minute},
		{name: "a workload reaches its time limit", job: aJob("RUNNING", group), pods: pods(pod(0), pod(1)), after: 10 * time.Minute, want: End, final: "TIMEOUT"},
		{name: "a workload is cancelled", job: aJob("RUNNING", group, cancelled), pods: pods(pod(0), pod(1)), want: End, final: "CANCELLED"},
		{name: "a workload is preempted", job: aJob("RUNNING", group, preempted("REQUEUE")), pods: pods(pod(0), pod(1)), after: time.Minute, want: End, final: "PREEMPTED"},
		{name: "its node is lost", job: aJob("RUNNING", group), pods: pods(pod(0), pod(1)), lost: "n2", want: End, final: "NODE_FAIL"},
		{name: "a kubelet refuses a pod of a group", job: aJob("RUNNING", group), pods: pods(pod(0), pod(1, refusedByKubelet)), want: End, final: "PENDING", refused: "n2"},
		{name: "a kubelet refuses a single pod", job: aJob("RUNNING", single), pods: pods(pod(0), pod(1, refusedByKubelet)), want: End, final: "FAILED", refused: "n2"},
		{name: "every pod succeeds", job: aJob("RUNNING", group), pods: pods(pod(0, succeeded), pod(1, succeeded)), want: End, final: "COMPLETED"},
		{name: "one pod fails", job: aJob("RUNNING", group), pods: pods(pod(0, succeeded), pod(1, ended(3, "Error", ""))), want: End, final: "FAILED"},
		{name: "one pod is out of memory", job: aJob("RUNNING", group), pods: pods(pod(0, ended(137, "OOMKilled", "")), pod(1, succeeded)), want: End, final: "OUT_OF_MEMORY"},
		{name: "a pod is deleted", job: aJob("RUNNING", group), pods: pods(pod(0, succeeded)), want: End, final: "CANCELLED"},

		{name: "the remaining pods are deleted", job: aJob("COMPLETING", group, completing("TIMEOUT")), pods: pods(pod(0), pod(1, deleted)), want: CleanUp, wake: killMargin},
		{name: "pods that are being deleted are waited for", job: aJob("COMPLETING", group, completing("TIMEOUT")), pods: pods(pod(0, deleted), pod(1, deleted)), want: Wait, wake: killMargin},
		{name: "pods on a lost node are deleted by force", job: aJob("COMPLETING", group, completing("NODE_FAIL")), pods: pods(pod(0, deleted), pod(1, succeeded)), lost: "n1", want: CleanUp, wake: killMargin},
		{name: "pods without a node stay for the next placement", job: aJob("COMPLETING", group, completing("PENDING")),
			pods: pods(pod(0, unbound), pod(1, unbound)), want: Finish},
		{name: "pods without a node are deleted if the job was cancelled meanwhile", job: aJob("COMPLETING", group, completing("PENDING"), cancelled),
			pods: pods(pod(0, unbound), pod(1, unbound)), want: CleanUp, wake: killMargin},
		{name: "a single pod that was bound after all stays", job: aJob("COMPLETING", alone, completing("PENDING"), was("CONFIGURING")),
			pods: pods(pod(0)), want: Finish},
		{name: "its job was preempted", job: aJob("COMPLETING", alone, completing("PENDING"), was("CONFIGURING"), preempted("REQUEUE")),
			pods: pods(pod(0)), want: CleanUp, wake: killMargin},
		{name: "its job was cancelled meanwhile", job: aJob("COMPLETING", alone, completing("PENDING"), was("CONFIGURING"), cancelled),
			pods: pods(pod(0)), want: CleanUp, wake: killMargin},
		{name: "its job ran", job: aJob("COMPLETING", alone, completing("PENDING"), was("RUNNING")),
			pods: pods(pod(0)), want: CleanUp, wake: killMargin},
		{name: "the pods of a group that were bound after all are made again", job: aJob("COMPLETING", group, completing("PENDING"), was("CONFIGURING")),
			pods: pods(pod(0), pod(1)), want: CleanUp, wake: killMargin},
		{name: "a job with a final state is kept for MinJobAge", job: aJob("COMPLETED", group, completing("")), pods: pods(pod(0, succeeded)), want: Wait, wake: 5 * time.Minute},
	}
	for _, tt := range tests {
		a := Next(Facts{Job: tt.job, Pods: tt.pods, Now: t0.Add(tt.after), Rules: rules,
			Assumed: control.IsSinglePod(tt.job) && tt.job.Status.State != "",
			Lost:    func(n string) bool { return n == tt.lost }, Unreachable: func(n string) bool { return n == tt.lost }})
		wake := time.Duration(0)
		if !a.Wake.IsZero() {
			wake = a.Wake.Sub(t0.Add(tt.after))
			if a.Kind == Wait {
				wake = a.Wake.Sub(t0)
			}
		}
		if a.Kind != tt.want || a.Outcome.Final != tt.final || a.Outcome.Refused != tt.refused || wake != tt.wake {
			t.Errorf("%s: kind %d %+v wake %v, want kind %d %q %q wake %v", tt.name, a.Kind, a.Outcome, wake, tt.want, tt.final, tt.refused, tt.wake)
		}
	}
}

// A gang that a kubelet refuses is requeued as a whole, and the outcome names the node.
// For an evicted pod it names none.
func TestKubeletRefusalNamesTheNode(t *testing.T) {
	f := Facts{Job: aJob("CONFIGURING"), Pods: pods(pod(0), pod(1, refusedByKubelet)), Now: t0, Rules: rules,
		Lost: never, Unreachable: never}
	if a := Next(f); a.Outcome.Final != "PENDING" || a.Outcome.Refused != "n2" {
		t.Errorf("%+v", a)
	}
	for reason, only := range map[string]bool{
		"OutOfcpu": false, "UnexpectedAdmissionError": false, "SMTAlignmentError": true,
		"TopologyAffinityError": true,
	} {
		f.Pods = pods(pod(0), pod(1, refusedByKubelet))
		f.Pods[1].Status.Reason = reason
		if a := Next(f); a.Outcome.Final != "PENDING" || a.Outcome.Refused != "n2" || a.Outcome.ThisJobOnly != only {
			t.Errorf("%s: %+v", reason, a.Outcome)
		}
	}
	f.Pods = pods(pod(0), pod(1, evictedPod))
	if a := Next(f); a.Outcome.Final != "PENDING" || a.Outcome.Refused != "" {
		t.Errorf("evicted: %+v", a)
	}
}

// A job runs beyond its limit for as long as OverTimeLimit allows.
func TestOverTimeLimit(t *testing.T) {
	for after, want := range map[time.Duration]Kind{12 * time.Minute: Wait, 13*time.Minute - time.Second: Wait, 13 * time.Minute: End} {
		f := Facts{Job: aJob("RUNNING"), Pods: pods(pod(0), pod(1)), Now: t0.Add(after), Rules: rules, Lost: never, Unreachable: never}
		f.Rules.OverTimeLimit = 3 * time.Minute
		a := Next(f)
		if a.Kind != want || want == End && a.Outcome.Final != v1alpha1.StateTimeout || want == Wait && !a.Wake.Equal(t0.Add(13*time.Minute)) {
			t.Errorf("after %v: %+v", after, a)
		}
	}
}

// The write of a placement creates the object as well, so it is not created before,
// unless a plan leaves the job pending.
func TestPendingWorkloadGetsItsObjectInTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration // since it was submitted
		reason string
		made   bool // already
		want   Kind
		wake   time.Duration
	}{
		{name: "it may still be placed", after: createDelay / 2, reason: "Resources", want: Wait, wake: createDelay},
		{name: "a plan leaves it pending", after: createDelay, reason: "Resources", want: CreateObject},
		{name: "no plan has considered it", after: createDelay, want: Wait, wake: 2 * createDelay},
		{name: "no plan has considered it for longer", after: maxCreateDelay - createDelay/2, want: Wait, wake: maxCreateDelay},
		{name: "no plan has considered it for too long", after: maxCreateDelay, want: CreateObject},
		{name: "it has an object", after: maxCreateDelay, reason: "Resources", made: true, want: Wait},
	} {
		b := aJob("", representing("group ml/g"))
		b.Spec.SubmitTime = at(t0)
		if b.UID = ""; tt.made {
			b.UID = "g"
		}
		a := Next(Facts{Job: b, Pods: pods(pod(0, unbound), pod(1, unbound)), Now: t0.Add(tt.after), Rules: rules, PlanReason: tt.reason})
		wake := time.Duration(0)
		if !a.Wake.IsZero() {
			wake = a.Wake.Sub(t0)
		}
		if a.Kind != tt.want || wake != tt.wake {
			t.Errorf("%s: kind %d, wake %v; want kind %d, wake %v", tt.name, a.Kind, wake, tt.want, tt.wake)
		}
	}
}

// kube-scheduler rejects the pods of a workload while their nodes boot, and may pause before it
// tries again when they have come.
func TestPodsOnNodesThatHaveJustBooted(t *testing.T) {
	f := Facts{Job: aJob("CONFIGURING", representing("group ml/g")), Rules: rules,
		Pods: pods(pod(0), pod(1, unschedulableSince(t0))),
		Lost: never, Unreachable: never,
		Boot: func(string) Boot { return Boot{Ready: t0.Add(5 * time.Second)} }}
	for after, want := range map[time.Duration]Kind{24 * time.Second: Wait, 25 * time.Second: End} {
		f.Now = t0.Add(after)
		if a := Next(f); a.Kind != want {
			t.Errorf("after %v: %+v", after, a)
		}
	}
}
