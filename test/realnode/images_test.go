//go:build e2ereal

package realnode

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bareScript runs in an image that contains only a shell, and prints whatever else it finds.
const bareScript = `#!/bin/sh
read host < /proc/sys/kernel/hostname
for place in /usr /bin/ls /var/lib; do test ! -e $place || echo "there is $place"; done
echo "batch on $host in $PWD"
srun sh -c 'read host < /proc/sys/kernel/hostname; echo "task $SLURM_PROCID on $host of $SLURM_JOB_NUM_NODES"'
`

func checkBare(t *testing.T, out, batch string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || lines[0] != batch+" in "+user.Home() {
		t.Errorf("the job wrote\n%s", out)
	}
	for _, want := range []string{"task 0 on n1 of 2", "task 1 on n2 of 2"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// testContainerImage runs a script of pyxis' in the image that it names.
func testContainerImage(t *testing.T, ctx context.Context, s *Site) {
	writeHome(t, "pyxis.sh", strings.Replace(bareScript, "\n", "\n#SBATCH --container-image=berth.test\\#shell:local\n", 1))
	writeHome(t, "data/in", "mounted\n")
	out := runJob(t, ctx, s, "pyxis", "-J", "pyxis", "-o", "pyxis-%j.out", "-w", "n[1-2]", "-N2", "pyxis.sh")
	checkBare(t, out, "batch on n1")

	out = runJob(t, ctx, s, "mounts", "-J", "mounts", "-o", "mounts-%j.out", "--container-image=berth.test#shell:local",
		"--container-mounts="+user.Home()+"/data:/data", "--wrap", "read line < /data/in; echo $line")
	if out != "mounted\n" {
		t.Errorf("the job with a mount wrote %q", out)
	}
	// The image of a step's caller, which is the partition's.
	out, err := s.As(ctx, user, user.Home(), "srun", "-N1", "--container-image=berth.test#shell:local", "sh", "-c", "test -e /usr || echo bare")
	if err != nil || out != "bare\n" {
		t.Errorf("srun --container-image: %q, %v", out, err)
	}
	if out, err := s.As(ctx, user, user.Home(), "sbatch", "--container-image=example.org#any", "--wrap", "true"); err == nil ||
		!strings.Contains(err.Error(), "does not allow image example.org/any") {
		t.Errorf("an image that is not allowed: %q, %v", out, err)
	}
}

// testShell runs a job in a partition whose image contains only a shell.
func testShell(t *testing.T, ctx context.Context, s *Site) {
	writeHome(t, "bare.sh", bareScript)
	checkBare(t, runJob(t, ctx, s, "bare", "-p", ShellPartition, "-J", "bare", "-o", "bare-%j.out", "-w", "n[1-2]", "-N2", "bare.sh"), "batch on n1")
}

// testReadOnly runs a job that cannot write to its root file system, except to directories that
// programs expect to be writable.
func testReadOnly(t *testing.T, ctx context.Context, s *Site) {
	out := runJob(t, ctx, s, "readonly", "-p", ReadOnlyPartition, "-N2", "-J", "readonly", "-o", "readonly-%j.out", "--wrap",
		`(touch /usr/x 2>&1) | grep -o 'Read-only file system'; srun sh -c 'f=$(mktemp) && case $f in /tmp/*) echo made;; esac'`)
	if out != "Read-only file system\nmade\nmade\n" {
		t.Errorf("the job wrote %q", out)
	}
}

// testStrict runs jobs of another user in a namespace that enforces the
// restricted standard, with homes from a claim.
func testStrict(t *testing.T, ctx context.Context, s *Site) {
	name := "user-" + other.Name
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := s.Client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	addHomeClaim(t, ctx, s, name)
	id := submitAs(t, ctx, s, other, "-p", StrictPartition, "-N3", "-J", "strict", "-o", "strict.out", "--wrap", "id -u; srun id -u; grep NoNewPrivs /proc/self/status")
	waitForState(t, ctx, s, id, "COMPLETED")
	b, err := os.ReadFile(filepath.Join(other.Home(), "strict.out"))
	if want := strings.Repeat("70007\n", 4) + "NoNewPrivs:\t1\n"; err != nil || string(b) != want {
		t.Errorf("the job wrote %q, %v, want %q", b, err, want)
	}
	// The namespace enforces the standard.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: SystemImage}}}}
	if _, err := s.Client.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
		t.Error("a pod without any restriction was accepted")
	}
}

func addHomeClaim(t *testing.T, ctx context.Context, s *Site, namespace string) {
	t.Helper()
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	class := storageClass
	_, err := s.Client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "homes-" + namespace},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, StorageClassName: class,
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: homeClaim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/home"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: homeClaim},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// writeHome writes a file of the user's.
func writeHome(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(user.Home(), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
