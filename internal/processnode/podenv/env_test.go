package podenv

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y": "x1y", "$(B)": "$(A)", "$$(A)": "$(A)", "$$$(A)": "$1",
		"$(NO)": "$(NO)", "$(A": "$(A", "$": "$", "$x": "$x", "a$$": "a$",
	} {
		if got := Expand(in, values); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name, pod.Labels, pod.Annotations = "p", map[string]string{"b": "2", "a/x": "1"}, map[string]string{"n": "v"}
	pod.Spec.NodeName = "node"
	f := Facts{Pod: pod, PodIP: "10.0.0.1", HostIP: "127.0.0.1"}
	for path, want := range map[string]string{
		"metadata.name": "p", "spec.nodeName": "node", "status.podIP": "10.0.0.1", "status.hostIP": "127.0.0.1",
		"metadata.labels['a/x']": "1", "metadata.annotations['n']": "v", "metadata.labels": "a/x=\"1\"\nb=\"2\"",
	} {
		if got, err := f.Field(path); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := f.Field("spec.nonsense"); err == nil {
		t.Error("no error for an unknown field")
	}
}
