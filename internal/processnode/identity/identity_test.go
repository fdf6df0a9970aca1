package identity

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestIdentityWithoutRootIsThatOfTheCaller(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Geteuid())), RunAsGroup: ptr.To(int64(os.Getegid()))}
	c := &corev1.Container{Name: "c"}
	if id, err := Of(pod, c, false); err != nil || id.UID != uint32(os.Geteuid()) {
		t.Errorf("own user: %+v, %v", id, err)
	}
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To(int64(os.Geteuid()) + 1)}
	if _, err := Of(pod, c, false); err == nil {
		t.Error("another user was accepted")
	}
	if id, err := Of(pod, c, true); err != nil || id.UID != uint32(os.Geteuid()+1) {
		t.Errorf("another user as root: %+v, %v", id, err)
	}
}

func TestCapabilities(t *testing.T) {
	all := &corev1.SecurityContext{Privileged: ptr.To(true)}
	none := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}}
	if Bounding(all) != nil {
		t.Error("the capabilities of a privileged container are limited")
	}
	if m := Bounding(none); *m != 1<<10 {
		t.Errorf("mask %x", *m)
	}
	if m := Bounding(nil); *m&(1<<capabilityNumbers["SYS_ADMIN"]) != 0 || *m&1 == 0 {
		t.Errorf("mask %x", *m)
	}
}
