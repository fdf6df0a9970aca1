package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/processnode"
)

// mount adds a volume and mounts it at path.
func mount(p *corev1.Pod, name, path string, source corev1.VolumeSource, change ...func(*corev1.VolumeMount)) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	m := corev1.VolumeMount{Name: name, MountPath: path}
	for _, f := range change {
		f(&m)
	}
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, m)
}

func TestVolumes(t *testing.T) {
	ctx := context.Background()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"k": "map", "other": "x"}}
	m, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, m, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}, Data: map[string][]byte{"k": []byte("secret")}}
	if s, err = client.CoreV1().Secrets(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	if err := os.Chmod(host, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	log, pod := finish(t, script(`set -e
cat /a/deep/map/key; echo; cat /a/secret/k; echo; stat -Lc %a /a/secret/k; cat /a/labels; echo; cat $PWD/f; echo
cat /opt/no/such/f; echo; touch /ro/x 2>/dev/null && echo writable; echo $FROM_k $ONE; cat /a/sub; echo
echo memory > /fast/x; cat /fast/x; ls /a/deep/map`, func(p *corev1.Pod) {
		p.Labels = map[string]string{"l": "v"}
		mount(p, "map", "/a/deep/map", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name}, Items: []corev1.KeyToPath{{Key: "k", Path: "key"}}}})
		mount(p, "secret", "/a/secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.Name, DefaultMode: ptr.To[int32](0o400)}})
		mount(p, "labels", "/a/labels", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{Path: "l", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['l']"}}}}},
			func(v *corev1.VolumeMount) { v.SubPath = "l" })
		mount(p, "same", host, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}})
		mount(p, "host", "/opt/no/such", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host, Type: ptr.To(corev1.HostPathDirectory)}})
		mount(p, "ro", "/ro", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}, func(v *corev1.VolumeMount) { v.ReadOnly = true })
		mount(p, "fast", "/fast", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
		mount(p, "sub", "/a/sub", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.Name}}},
			func(v *corev1.VolumeMount) { v.SubPath = "other" })
		c := &p.Spec.Containers[0]
		c.WorkingDir = host
		ref := corev1.LocalObjectReference{Name: m.Name}
		c.EnvFrom = []corev1.EnvFromSource{{Prefix: "FROM_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}}
		c.Env = []corev1.EnvVar{{Name: "ONE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s.Name}, Key: "k"}}}}
	}))
	want := "map\nsecret\n400\nv\nhost\nhost\nmap secret\nx\nmemory\nkey\n"
	if log != want || pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("log:\n%s\nwant:\n%s\nend: %+v", log, want, terminated(pod))
	}
	for _, p := range []string{"/a", "/opt/no", "/ro", "/fast"} {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s was created on the machine", p)
		}
	}
}

func TestOwnHostsFile(t *testing.T) {
	log, pod := finish(t, script(`set -e; echo 10.1.2.3 friend >> /etc/hosts; grep -c localhost /etc/hosts; getent hosts friend; getent hosts $(hostname) | wc -l; touch /shared/by-group; stat -c %g /shared/by-group`, func(p *corev1.Pod) {
		mount(p, "berth-hosts", "/etc/hosts", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, func(v *corev1.VolumeMount) { v.SubPath = "hosts" })
		mount(p, "shared", "/shared", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		sc := &corev1.PodSecurityContext{FSGroup: ptr.To(int64(os.Getgid()))}
		if processnode.IsRoot() {
			sc.RunAsUser, sc.RunAsGroup, sc.FSGroup = ptr.To[int64](4321), ptr.To[int64](4321), ptr.To[int64](77)
		}
		p.Spec.SecurityContext = sc
	}))
	group := "77"
	if !processnode.IsRoot() {
		group = strings.TrimSpace(itoa(os.Getgid()))
	}
	if want := "2\n10.1.2.3        friend\n1\n" + group + "\n"; log != want || pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("log %q, want %q, end %+v", log, want, terminated(pod))
	}
	if data, err := os.ReadFile("/etc/hosts"); err != nil || strings.Contains(string(data), "friend") {
		t.Errorf("the machine's /etc/hosts: %v", err)
	}
}

func TestPodWaitsForMissingObject(t *testing.T) {
	ctx := context.Background()
	name := "late-" + strings.ToLower(itoa(os.Getpid()))
	pod := create(t, script(`cat /m/k`, func(p *corev1.Pod) {
		mount(p, "m", "/m", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}))
	hasEvent(t, pod, name)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "here"}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod = await(t, pod, over)
	if l := logs(t, pod, corev1.PodLogOptions{}); l != "here" {
		t.Errorf("log %q", l)
	}
}
