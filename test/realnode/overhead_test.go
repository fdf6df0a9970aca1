//go:build e2ereal

package realnode

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testOverhead prints, without a limit, the cost of a job's pod compared with a plain
// one: the time to its first output, and the memory of its agent.
func testOverhead(t *testing.T, ctx context.Context, s *Site) {
	pods := s.Client.CoreV1().Pods("default")
	began := time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: corev1.PodSpec{
		NodeName: nodeNames[0], Containers: []corev1.Container{{Name: "c", Image: SystemImage, Command: []string{"sleep", "600"}}}}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(ctx, time.Minute, func() bool {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	}); err != nil {
		t.Fatal(err)
	}
	plain := time.Since(began)
	now := int64(0)
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}

	began = time.Now()
	id := submit(t, ctx, s, "-w", nodeNames[0], "-o", "overhead.out", "--wrap", "echo started; sleep 600")
	waitForOutput(t, ctx, "overhead.out", "started\n")
	job := time.Since(began)
	agents := residentAgents(t)
	if len(agents) == 0 {
		t.Error("no agent was found")
	}
	measured(t, "a plain pod, made to running", "%.2f s", plain.Seconds())
	measured(t, "a job, `sbatch` to its first line of output", "%.2f s", job.Seconds())
	for _, a := range agents {
		measured(t, "resident memory of a job's agent", "%s", a)
	}
	if _, err := s.As(ctx, user, user.Home(), "scancel", id); err != nil {
		t.Fatal(err)
	}
	waitForState(t, ctx, s, id, "CANCELLED")
}

var resident = regexp.MustCompile(`VmRSS:\s*(\d+ kB)`)

// residentAgents is the memory of all agents of the site.
func residentAgents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		if name, err := os.ReadFile(f); err != nil || string(name) != "agent\n" {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(f), "status"))
		if m := resident.FindSubmatch(status); err == nil && m != nil {
			found = append(found, string(m[1]))
		}
	}
	return found
}
