package decide

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creating makes the pod one that was bound at that time and whose container has not started.
func creating(bound time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(bound)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	}
}

// withDevices gives the pod a claim, whose devices are prepared or not.
func withDevices(prepared corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReadyToStartContainers, Status: prepared})
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

// TestPodsThatDoNotStart checks how long a placed job waits for pods that are bound, what it says
// when the time is over, and whether it avoids a node then.
func TestPodsThatDoNotStart(t *testing.T) {
	late := t0.Add(30 * time.Second)
	no, yes := corev1.ConditionFalse, corev1.ConditionTrue
	for _, c := range []struct {
		name    string
		pods    []*corev1.Pod
		after   time.Duration
		want    Kind
		wake    time.Duration
		why     string
		refused string
		asks    bool // for Kubernetes' last warning
	}{
		{name: "devices are being prepared", pods: pods(pod(0, creating(t0), withDevices(no)), pod(1)),
			after: time.Second, wake: time.Minute},
		{name: "devices are not prepared in time", pods: pods(pod(0), pod(1, creating(t0), withDevices(no))),
			after: time.Minute, want: End, why: "pod p1 on n2: its devices were not prepared within 1m0s", refused: "n2", asks: true},
		{name: "the time begins when the pod is bound", pods: pods(pod(0, creating(late), withDevices(no)), pod(1)),
			after: time.Minute, wake: 90 * time.Second},
		{name: "the image is pulled after that", pods: pods(pod(0, creating(t0), withDevices(yes)), pod(1)),
			after: time.Minute, wake: 10 * time.Minute},
		{name: "no kubelet has seen the pod", pods: pods(pod(0, creating(t0), withDevices(""))),
			after: time.Minute, want: End, why: "pod p0 on n1: its devices were not prepared within 1m0s", refused: "n1", asks: true},
		{name: "something else takes long", pods: pods(pod(0, creating(t0)), pod(1)), after: 10 * time.Minute, want: End,
			why: "not every node reported within 10m0s: pod p0 on n1 has not started", asks: true},
		{name: "no image", pods: pods(pod(0), pod(1, creating(t0), waiting("ImagePullBackOff", "no such image"))),
			after: time.Minute, want: End,
			why: "not every node reported within 1m0s: pod p1 on n2 has not started: ImagePullBackOff: no such image"},
		{name: "all run", pods: pods(pod(0), pod(1)), after: time.Minute, want: End, why: "not every node reported within 1m0s"},
	} {
		a := Next(Facts{Job: aJob("CONFIGURING"), Pods: c.pods, Now: t0.Add(c.after), Lost: never, Unreachable: never,
			Rules:    Rules{StartTimeout: time.Minute, PullTimeout: 10 * time.Minute},
			Progress: Progress{Attempt: 2, Created: true}})
		var wake time.Duration
		if !a.Wake.IsZero() {
			wake = a.Wake.Sub(t0)
		}
		o := &a.Outcome
		if a.Kind != c.want || wake != c.wake || o.Message != c.why || o.Refused != c.refused ||
			o.ThisJobOnly != (c.refused != "") || o.Unprepared != o.ThisJobOnly || (o.NotStarted != nil) != c.asks {
			t.Errorf("%s: %v, wake %s, %+v", c.name, a.Kind, wake, o)
		}
	}
}
