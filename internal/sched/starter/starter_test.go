package starter

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

func placed(state string) *v1alpha1.BatchJob {
	return &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"},
		Spec:       v1alpha1.BatchJobSpec{JobID: 7},
		Status: v1alpha1.BatchJobStatus{State: state, Attempt: 2, Allocation: &v1alpha1.Allocation{
			Nodes: []v1alpha1.NodeAllocation{{Name: "n1", Node: "n1.example.com"}, {Name: "n2"}}}},
	}
}

func TestPlacementsHoldOnlyWhileTheJobIsPlaced(t *testing.T) {
	for state, want := range map[string]bool{"": false, v1alpha1.StateConfiguring: true,
		v1alpha1.StateRunning: false, v1alpha1.StateCompleting: false, v1alpha1.StateCancelled: false} {
		c, err := control.New(&rest.Config{Host: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		c.Jobs.Apply(placed(state))
		p := Placements{c}
		if node, size, ok := p.Place(7, 2, 0); ok != want || ok && (node != "n1.example.com" || size != 2) {
			t.Errorf("%q: %s %d %v", state, node, size, ok)
		}
		for _, wrong := range [][3]int{{7, 1, 0}, {7, 2, 2}, {7, 2, -1}, {8, 2, 0}} {
			if _, _, ok := p.Place(int64(wrong[0]), int32(wrong[1]), wrong[2]); ok {
				t.Errorf("%q: job, attempt, index %v has a place", state, wrong)
			}
		}
	}
}

func TestBoundCountsThisAttemptOnly(t *testing.T) {
	c, err := control.New(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for uid, p := range map[string]struct{ attempt, node string }{"a": {"2", "n1"}, "b": {"2", ""}, "c": {"1", "n1"}} {
		c.Pods.Apply(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: "1",
				Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: p.attempt}},
			Spec: corev1.PodSpec{NodeName: p.node},
		})
	}
	if got := (Placements{c}).Bound(7, 2); len(got) != 1 || got[0] != "a" {
		t.Errorf("%v", got)
	}
}
