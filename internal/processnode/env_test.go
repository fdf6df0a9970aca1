package processnode

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y": "x1y", "$(B)": "$(A)", "$$(A)": "$(A)", "$$$(A)": "$1",
		"$(NO)": "$(NO)", "$(A": "$(A", "$": "$", "$x": "$x", "a$$": "a$",
	} {
		if got := expand(in, values); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name, pod.Labels, pod.Annotations = "p", map[string]string{"b": "2", "a/x": "1"}, map[string]string{"n": "v"}
	pod.Spec.NodeName = "node"
	f := podFacts{pod: pod, podIP: "10.0.0.1", hostIP: "127.0.0.1"}
	for path, want := range map[string]string{
		"metadata.name": "p", "spec.nodeName": "node", "status.podIP": "10.0.0.1", "status.hostIP": "127.0.0.1",
		"metadata.labels['a/x']": "1", "metadata.annotations['n']": "v", "metadata.labels": "a/x=\"1\"\nb=\"2\"",
	} {
		if got, err := f.field(path); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := f.field("spec.nonsense"); err == nil {
		t.Error("no error for an unknown field")
	}
}

func TestIdentityWithoutRootIsOnesOwn(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Geteuid())), RunAsGroup: ptr.To(int64(os.Getegid()))}
	c := &corev1.Container{Name: "c"}
	if id, err := identify(pod, c, false); err != nil || id.uid != uint32(os.Geteuid()) {
		t.Errorf("own user: %+v, %v", id, err)
	}
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To(int64(os.Geteuid()) + 1)}
	if _, err := identify(pod, c, false); err == nil {
		t.Error("another user was taken")
	}
	if id, err := identify(pod, c, true); err != nil || id.uid != uint32(os.Geteuid()+1) {
		t.Errorf("another user as root: %+v, %v", id, err)
	}
}

func TestCapabilities(t *testing.T) {
	all := &corev1.SecurityContext{Privileged: ptr.To(true)}
	none := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}}
	if bounding(all) != nil {
		t.Error("a privileged container keeps everything")
	}
	if m := bounding(none); *m != 1<<10 {
		t.Errorf("mask %x", *m)
	}
	if m := bounding(nil); *m&(1<<capabilityNumbers["SYS_ADMIN"]) != 0 || *m&1 == 0 {
		t.Errorf("mask %x", *m)
	}
}

func TestRequestsAreTheSumOrTheLargestInitContainer(t *testing.T) {
	cpu := func(s string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s)}}
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Resources: cpu("1")}, {Resources: cpu("500m")}}
	if q := requests(pod)[corev1.ResourceCPU]; q.MilliValue() != 1500 {
		t.Errorf("sum %s", q.String())
	}
	pod.Spec.InitContainers = []corev1.Container{{Resources: cpu("2")}}
	if q := requests(pod)[corev1.ResourceCPU]; q.MilliValue() != 2000 {
		t.Errorf("with init container %s", q.String())
	}
}
