package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/processnode"
)

// TestFilesOfPodsArePrivate: another user of the machine, who has read a pod's UID in /proc, can
// access no file of the pod.
func TestFilesOfPodsArePrivate(t *testing.T) {
	if !processnode.IsRoot() {
		t.Skip("other users need root")
	}
	if err := os.Chmod(state, 0o711); err != nil { // as the directory of a cluster that root has started
		t.Fatal(err)
	}
	pod := await(t, create(t, script("echo secret > /data/f; echo fast > /fast/f; chmod 666 /data/f /fast/f; echo up; sleep 600", func(p *corev1.Pod) {
		mount(p, "data", "/data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		mount(p, "fast", "/fast", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	})), running)
	eventually.Holds(t, "the pod has written its output", func() bool { return logs(t, pod, corev1.PodLogOptions{}) == "up\n" })
	found := 0
	for _, root := range []string{state, "/dev/shm", "/run"} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.Contains(path, string(pod.UID)) {
				return nil //nolint:nilerr // files of other processes may be removed meanwhile
			}
			if name := filepath.Base(path); name != "f" && name != "termination-log" {
				return nil
			}
			found++
			cmd := exec.Command("/bin/sh", "-c", `cat "$1" || echo x >> "$1"`, "sh", path)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("%s: another user reads or writes it: %s", path, out)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 3 {
		t.Errorf("found %d files of the pod, want those of both volumes and the termination log", found)
	}
}

// TestTerminationMessagesAreBounded: a long message of a container is truncated.
func TestTerminationMessagesAreBounded(t *testing.T) {
	_, pod := finish(t, script("head -c 10000000 /dev/zero | tr '\\0' x > /dev/termination-log"))
	if n := len(terminated(pod).Message); n != 4096 {
		t.Errorf("a message of %d bytes", n)
	}
}
