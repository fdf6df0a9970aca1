package plugin

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-hpc/berth/internal/wire"
)

type placements struct {
	nodes []string
	bound []types.UID
}

func (p *placements) Place(id int64, attempt int32, index int) (string, int, bool) {
	if id != 7 || attempt != 2 || index >= len(p.nodes) {
		return "", 0, false
	}
	return p.nodes[index], len(p.nodes), true
}

func (p *placements) Bound(int64, int32) []types.UID { return p.bound }

// waiters stands for the framework's map of waiting pods.
type waiters struct{ allowed, rejected map[types.UID]bool }

type waiter struct {
	fwk.WaitingPod
	w   *waiters
	uid types.UID
}

func (w waiter) Allow(string) { w.w.allowed[w.uid] = true }

func (w *waiters) GetWaitingPod(uid types.UID) fwk.WaitingPod { return waiter{w: w, uid: uid} }
func (w *waiters) RejectWaitingPod(uid types.UID) bool {
	w.rejected[uid] = true
	return true
}

func pod(index int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID:    types.UID(strconv.Itoa(index)),
		Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: "2"},
		Annotations: map[string]string{
			wire.AnnotationNodeOffset:            strconv.Itoa(index / 2 * 2),
			batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index % 2),
		},
	}}
}

func newPlugin(nodes ...string) (*Plugin, *placements, *waiters) {
	p := &placements{nodes: nodes}
	w := &waiters{map[types.UID]bool{}, map[types.UID]bool{}}
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
		t.Errorf("a pod without a place: %v", st)
	}
	old := pod(0)
	old.Labels[wire.LabelAttempt] = "1"
	if _, st := p.PreFilter(t.Context(), nil, old, nil); st.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("a pod of an attempt that is over: %v", st)
	}
	if _, st := p.PreFilter(t.Context(), nil, &corev1.Pod{}, nil); !st.IsSkip() {
		t.Errorf("a pod of no job: %v", st)
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
		t.Errorf("the last pod let go only %v", w.allowed)
	}
}

func TestPermitCountsPodsBoundBeforeARestart(t *testing.T) {
	p, pl, _ := newPlugin("n1", "n2")
	pl.bound = []types.UID{"0"}
	p.Reserve(t.Context(), nil, pod(1), "")
	if st, _ := p.Permit(t.Context(), nil, pod(1), ""); !st.IsSuccess() {
		t.Errorf("the rest of a half-bound gang must go on: %v", st)
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
	p.Unreserve(t.Context(), nil, pod(0), "")
	if len(p.gangs.reserved) != 0 {
		t.Errorf("gangs left behind: %v", p.gangs.reserved)
	}
}

func TestPermitRefusesAfterThePlacementIsGone(t *testing.T) {
	p, pl, _ := newPlugin("n1")
	p.Reserve(t.Context(), nil, pod(0), "")
	pl.nodes = nil
	if st, _ := p.Permit(t.Context(), nil, pod(0), ""); !st.IsRejected() {
		t.Errorf("got %v", st)
	}
}
