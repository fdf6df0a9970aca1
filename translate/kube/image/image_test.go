package image

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func partition(images ...string) *v1alpha1.Partition {
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	p.Spec.AllowImages = images
	p.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"job","image":"site/base:1","volumeMounts":[
		{"name":"home","mountPath":"/home"},{"name":"data","mountPath":"/data","readOnly":true},{"name":"team","mountPath":"/home/team","subPath":"t"}]}]}}`)
	return p
}

func TestCheck(t *testing.T) {
	process := partition("*")
	process.Spec.Template.Raw = nil
	readonly := partition("*")
	readonly.Spec.Template.Raw = []byte(
		`{"spec":{"containers":[{"name":"job","image":"site/base:1","securityContext":{"readOnlyRootFilesystem":true}}]}}`,
	)
	for _, tt := range []struct {
		part   *v1alpha1.Partition
		choice map[string]string
		want   string
	}{
		{partition("*"), nil, ""},
		{partition("*"), map[string]string{"image": "nvcr.io/x:1"}, ""},
		{partition("nvcr.io/*", "busybox"), map[string]string{"image": "busybox"}, ""},
		{partition("nvcr.io/*"), map[string]string{"image": "evil.io/nvcr.io/x"},
			"does not allow image evil.io/nvcr.io/x"},
		{partition(), map[string]string{"image": "busybox"}, "does not allow image"},
		{partition("*"), map[string]string{"mounts": "/home"}, "need --container-image"},
		{process, map[string]string{"image": "busybox"}, "runs jobs as processes of its nodes"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/root:/mnt"}, "/root is not on a volume"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/homeland:/mnt"}, "/homeland is not on a volume"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/../etc:/mnt"}, "/etc is not on a volume"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/etc"}, "cannot mount anything at /etc"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/etc/hosts"},
			"cannot mount anything at /etc/hosts"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/etc/passwd"},
			"cannot mount anything at /etc/passwd"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/run/berth/x"},
			"cannot mount anything at /run/berth/x"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/proc/self"},
			"cannot mount anything at /proc/self"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/dev/shm"},
			"cannot mount anything at /dev/shm"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/x/../berth"},
			"cannot mount anything at /berth"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/berth/bin"},
			"cannot mount anything at /berth/bin"},
		{partition("*"), map[string]string{"image": "x", "mounts": "/home/a:/var/run/secrets/x"},
			"cannot mount anything"},
		{partition("*"), map[string]string{"image": "x", "workdir": "here"}, "not an absolute path"},
		{partition("*"), map[string]string{"image": "x", "writable": "true"}, ""},
		{readonly, map[string]string{"image": "x", "writable": "true"},
			"mounts the file systems of containers read-only"},
		{readonly, map[string]string{"image": "x", "readonly": "true"}, ""},
	} {
		err := Check(tt.part, tt.choice)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.choice, err, tt.want)
		}
	}
}

// TestMounts checks that mounts keep the access mode of the partition's volumes.
func TestMounts(t *testing.T) {
	p := partition("*")
	c := &corev1.Container{Image: "site/base:1", VolumeMounts: []corev1.VolumeMount{
		{
			Name:      "home",
			MountPath: "/home",
		},
		{Name: "data", MountPath: "/data", ReadOnly: true},
		{Name: "team", MountPath: "/home/team", SubPath: "t"},
	}}
	if err := Apply(
		p,
		c,
		map[string]string{
			"image":  "x:2",
			"mounts": "/home/alice/src:/work,/data/set:/set:rw,/home/team/a:/team:ro,/home",
		},
	); err != nil {
		t.Fatal(err)
	}
	want := []corev1.VolumeMount{
		{Name: "home", MountPath: "/work", SubPath: "alice/src"},
		{Name: "data", MountPath: "/set", SubPath: "set", ReadOnly: true},
		{Name: "team", MountPath: "/team", SubPath: "t/a", ReadOnly: true},
	}
	if got := c.VolumeMounts[3:]; c.Image != "x:2" || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] ||
		got[2] != want[2] {
		t.Errorf("%s %+v", c.Image, got)
	}
}
