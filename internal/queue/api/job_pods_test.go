package api_test

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// pod is a pod of anna's job 1.
func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: "user-anna",
			UID:       types.UID("uid-" + name),
			Labels:    map[string]string{wire.LabelJobID: "1"},
		},
	}
	p.Status.Phase = phase
	return p
}

// TestPods: a job's owner sees why a pod does not start, and what the pods use where
// there is a metrics API; other users see nothing.
func TestPods(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", fake.InState(v1alpha1.StateConfiguring))
	stuck := pod("a-stuck", corev1.PodPending)
	stuck.Spec.NodeName = "n2"
	stuck.Status.ContainerStatuses = []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ImagePullBackOff", Message: `Back-off pulling image "no/such"`}}},
	}
	fake.Feed(s.Cluster, pod("a-fine", corev1.PodRunning), stuck, pod("z-refused", corev1.PodFailed))
	other := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "user-anna"}, Reason: "Other",
		InvolvedObject: corev1.ObjectReference{UID: "uid-of-another"}}
	pulled := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "pull", Namespace: "user-anna"},
		Type:           "Warning",
		Reason:         "Failed",
		Message:        "not found",
		Count:          3,
		InvolvedObject: corev1.ObjectReference{UID: stuck.UID},
		LastTimestamp:  metav1.Unix(1000, 0),
	}
	used := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
		"metadata":  map[string]any{"name": "a-fine", "namespace": "user-anna"},
		"timestamp": "2026-11-22T10:00:00Z",
		"containers": []any{
			map[string]any{"name": "a", "usage": map[string]any{"cpu": "1500m", "memory": "1Gi"}},
			map[string]any{"name": "b", "usage": map[string]any{"cpu": "250000000n", "memory": "1024Ki"}},
		},
	}}
	for _, o := range []client.Object{other, pulled, used} {
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	path := wire.QueueRoot + "/jobs/1/pods?usage=true"
	if code := s.ask(t, s.proxy, "ben", "GET", path, nil, nil); code != http.StatusForbidden {
		t.Errorf("response to another user: %d", code)
	}
	if code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+"/jobs/9/pods", nil, nil); code != http.StatusNotFound {
		t.Errorf("response for a job that does not exist: %d", code)
	}
	s.table.Expect(2, 1, "anna") // its event comes while the request waits
	time.AfterFunc(20*time.Millisecond, func() { s.add(t, 2, "anna", nil) })
	if code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+"/jobs/2/pods", nil, nil); code != http.StatusOK {
		t.Errorf("response for a job that was just submitted: %d", code)
	}
	var list status.PodList
	if code := s.ask(t, s.proxy, "anna", "GET", path, nil, &list); code != http.StatusOK || list.Count != 3 ||
		len(list.Items) != 3 {
		t.Fatalf("%d %+v", code, list)
	}
	if got := list.Items[0]; got.Name != "z-refused" || got.Phase != "Failed" {
		t.Errorf("the failed pod does not come first, but %+v", got)
	}
	got := list.Items[1]
	if got.Name != "a-stuck" || got.Node != "n2" || got.Reason != "ImagePullBackOff" || got.Message == "" {
		t.Errorf("%+v", got)
	}
	event := status.PodEvent{Time: 1000, Type: "Warning", Reason: "Failed", Message: "not found", Count: 3}
	if len(got.Events) != 1 || got.Events[0] != event {
		t.Errorf("%+v", got.Events)
	}
	if got := list.Items[2]; got.CPU != 1750 || got.Memory != 1<<30+1<<20 || got.Measured != 1795341600 {
		t.Errorf("used %+v", got)
	}
}
