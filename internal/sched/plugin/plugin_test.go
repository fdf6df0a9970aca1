package plugin

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-hpc/berth/internal/wire"
)

type placements struct {
	nodes []string
	bound []types.UID
}

func (p *placements) Place(namespace string, id int64, attempt int32, index int) (string, int, bool) {
	if namespace != "user-a" || id != 7 || attempt != 2 || index >= len(p.nodes) {
		return "", 0, false
	}
	return p.nodes[index], len(p.nodes), true
}

// Workload treats the pods of namespace user-a whose names are numbers as a workload's.
func (p *placements) Workload(pod *corev1.Pod) (int64, int32, int, bool) {
	index, err := strconv.Atoi(pod.Name)
	return 7, 2, index, err == nil && pod.Namespace == "user-a"
}

func (p *placements) Bound(int64, int32) []types.UID { return p.bound }

// fakeHandle records what the plugin does with waiting pods.
type fakeHandle struct{ allowed, rejected, activated map[types.UID]bool }

func (w *fakeHandle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, p := range pods {
		w.activated[p.UID] = true
	}
}

type waitingPod struct {
	fwk.WaitingPod
	w   *fakeHandle
	uid types.UID
}

func (w waitingPod) Allow(string) { w.w.allowed[w.uid] = true }

func (w *fakeHandle) GetWaitingPod(uid types.UID) fwk.WaitingPod { return waitingPod{w: w, uid: uid} }
func (w *fakeHandle) RejectWaitingPod(uid types.UID) bool {
	w.rejected[uid] = true
	return true
}

func pod(index int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "user-a", UID: types.UID(strconv.Itoa(index)), Name: "p" + strconv.Itoa(index),
		Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: "2"},
		Annotations: map[string]string{
			wire.AnnotationNodeOffset:            strconv.Itoa(index / 2 * 2),
			batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index % 2),
		},
	}}
}

func newPlugin(nodes ...string) (*Plugin, *placements, *fakeHandle) {
	p := &placements{nodes: nodes}
	w := &fakeHandle{map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}}
	return &Plugin{placements: p, waiting: w}, p, w
}

func TestPreFilterAllowsOnlyThePlannedNode(t *testing.T) {
	p, _, _ := newPlugin("n1", "n2", "n3")
	for i, want := range []string{"n1", "n2", "n3"} {
		r, st := p.PreFilter(t.Context(), nil, pod(i), nil)
		if !st.IsSuccess() || r.NodeNames.Len() != 1 || !r.NodeNames.Has(want) {
			t.Errorf("pod %d: %v %v, want %s", i, r, st, want)
		}
	}
	if _, st := p.PreFilter(t.Context(), nil, pod(3), nil); st.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("a pod without a placement: %v", st)
	}
	old := pod(0)
	old.Labels[wire.LabelAttempt] = "1"
	if _, st := p.PreFilter(t.Context(), nil, old, nil); st.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("a pod of an attempt that is over: %v", st)
	}
	if _, st := p.PreFilter(t.Context(), nil, &corev1.Pod{}, nil); !st.IsSkip() {
		t.Errorf("a pod of no job: %v", st)
	}
	listed := pod(1) // of an unequal job: the second of nodes 0 and 2
	listed.Annotations[wire.AnnotationNodes] = "0,2"
	if r, st := p.PreFilter(t.Context(), nil, listed, nil); !st.IsSuccess() || !r.NodeNames.Has("n3") {
		t.Errorf("%v %v, want n3", r, st)
	}
	bad := pod(0)
	bad.Annotations[wire.AnnotationNodeOffset] = "-1"
	if _, st := p.PreFilter(t.Context(), nil, bad, nil); st.IsSuccess() {
		t.Error("a bad offset was accepted")
	}
}

func TestPermitWaitsForTheWholeGang(t *testing.T) {
	p, _, w := newPlugin("n1", "n2", "n3")
	for i := range 3 {
		p.Reserve(t.Context(), nil, pod(i), "")
		st, _ := p.Permit(t.Context(), nil, pod(i), "")
		if last := i == 2; last != st.IsSuccess() || !last && st.Code() != fwk.Wait {
			t.Fatalf("pod %d: %v", i, st)
		}
	}
	if !w.allowed["0"] || !w.allowed["1"] {
		t.Errorf("the last pod allowed only %v", w.allowed)
	}
}

func TestPermitCountsPodsBoundBeforeARestart(t *testing.T) {
	p, pl, _ := newPlugin("n1", "n2")
	pl.bound = []types.UID{"0"}
	p.Reserve(t.Context(), nil, pod(1), "")
	if st, _ := p.Permit(t.Context(), nil, pod(1), ""); !st.IsSuccess() {
		t.Errorf("the rest of a gang that is bound in part is not bound: %v", st)
	}
}

func TestUnreserveRejectsTheRestOfTheGang(t *testing.T) {
	p, _, w := newPlugin("n1", "n2", "n3")
	p.Reserve(t.Context(), nil, pod(0), "")
	p.Reserve(t.Context(), nil, pod(1), "")
	p.Unreserve(t.Context(), nil, pod(1), "")
	if !w.rejected["0"] || w.rejected["1"] {
		t.Errorf("rejected %v", w.rejected)
	}
	if !w.activated["0"] {
		t.Error("a rejected pod is not activated")
	}
	p.Unreserve(t.Context(), nil, pod(0), "")
	if len(p.gangs.reserved) != 0 {
		t.Errorf("gangs left behind: %v", p.gangs.reserved)
	}
}

func TestPermitRejectsWithoutAPlacement(t *testing.T) {
	p, pl, _ := newPlugin("n1")
	p.Reserve(t.Context(), nil, pod(0), "")
	pl.nodes = nil
	if st, _ := p.Permit(t.Context(), nil, pod(0), ""); !st.IsRejected() {
		t.Errorf("permit without a placement: %v", st)
	}
}

// A pod with a job's label in another namespace than the job's does not belong to the job.
func TestLabelInAnotherNamespaceGivesNoPlacement(t *testing.T) {
	p, _, _ := newPlugin("n1", "n2")
	forged := pod(1)
	forged.Namespace = "elsewhere"
	if _, st := p.PreFilter(t.Context(), nil, forged, nil); st.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("a pod with a forged label: %v", st)
	}
}

func workloadPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "user-a", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName}}
}

func TestWorkloadPodWaitsForItsPlacement(t *testing.T) {
	p, pl, w := newPlugin()
	for _, name := range []string{"0", "stranger"} {
		if st := p.PreEnqueue(t.Context(), workloadPod(name)); st.Code() != fwk.UnschedulableAndUnresolvable {
			t.Errorf("%s is queued without a placement: %v", name, st)
		}
	}
	other := workloadPod("stranger")
	other.Spec.SchedulerName = corev1.DefaultSchedulerName
	if st := p.PreEnqueue(t.Context(), other); !st.IsSuccess() {
		t.Errorf("a pod for another scheduler is held back: %v", st)
	}
	if st := p.PreEnqueue(t.Context(), pod(0)); !st.IsSuccess() {
		t.Errorf("a job's own pod is held back: %v", st)
	}
	if _, st := p.PreFilter(
		t.Context(),
		nil,
		workloadPod("stranger"),
		nil,
	); st.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("a pod of no job is scheduled to any node: %v", st)
	}
	pl.nodes = []string{"n1"}
	var waker Waker
	waker.add(w)
	waker.Wake([]*corev1.Pod{workloadPod("0")})
	if !w.activated["0"] {
		t.Error("the placed pod is not activated")
	}
	if st := p.PreEnqueue(t.Context(), workloadPod("0")); !st.IsSuccess() {
		t.Errorf("the placed pod is held back: %v", st)
	}
	r, st := p.PreFilter(t.Context(), nil, workloadPod("0"), nil)
	if !st.IsSuccess() || !r.NodeNames.Has("n1") {
		t.Errorf("%v %v", r, st)
	}
	if events, err := p.EventsToRegister(t.Context()); err != nil || len(events) != 0 {
		t.Errorf("events %v %v", events, err)
	}
}
