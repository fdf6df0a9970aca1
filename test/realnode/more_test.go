//go:build e2ereal

package realnode

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testArray runs the tasks of an array, two at a time.
func testArray(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "--array=1-4%2", "-o", "array-%a.out", "--wrap", "echo task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT as $(id -u)")
	for _, n := range []string{"1", "2", "3", "4"} {
		waitForState(t, ctx, s, id+"_"+n, "COMPLETED")
		if out := output(t, "array-"+n+".out"); out != "task "+n+" of 4 as 15001\n" {
			t.Errorf("task %s wrote %q", n, out)
		}
	}
}

// testSignal requests a signal before the time limit of a job.
func testSignal(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-N1", "-t1", "--signal=B:USR1@50", "-o", "signal.out", "--wrap", "trap 'echo signalled; exit 4' USR1; echo started; while :; do sleep 0.2; done")
	waitForState(t, ctx, s, id, "FAILED")
	if out := output(t, "signal.out"); out != "started\nsignalled\n" {
		t.Errorf("the job wrote %q", out)
	}
}

// testAllocation requests an allocation and runs a step in it from outside.
func testAllocation(t *testing.T, ctx context.Context, s *Site) {
	out, err := s.As(ctx, user, user.Home(), "salloc", "-N2", "-t5", "srun", "hostname")
	lines := strings.Fields(out)
	if err != nil || len(lines) != 2 || lines[0] == lines[1] {
		t.Errorf("salloc srun hostname: %q, %v", out, err)
	}
	if out, err = s.As(ctx, user, user.Home(), "srun", "-N1", "-t5", "id", "-u"); err != nil || out != "15001\n" {
		t.Errorf("srun id -u: %q, %v", out, err)
	}
}

// testGPU gives a node the resources and labels that NVIDIA's device plugin and feature
// discovery would set.
func testGPU(t *testing.T, ctx context.Context, s *Site) {
	nodes := s.Client.CoreV1().Nodes()
	patch := []byte(`{"metadata":{"labels":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"}}}`)
	if _, err := nodes.Patch(ctx, nodeNames[1], types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	patch = []byte(`{"status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"2"}}}`)
	if _, err := nodes.Patch(ctx, nodeNames[1], types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	var gres string
	var err error
	if err := waitFor(ctx, time.Minute, func() bool {
		gres, err = s.As(ctx, user, user.Home(), "sinfo", "-h", "-N", "-n", nodeNames[1], "-o", "%G")
		return err == nil && strings.Contains(gres, "gpu:a100:2")
	}); err != nil {
		t.Fatalf("sinfo prints %q: %v", gres, err)
	}
	id := submit(t, ctx, s, "--gres=gpu:a100:1", "-o", "gpu.out", "--wrap", "hostname")
	waitForState(t, ctx, s, id, "COMPLETED")
	if out := output(t, "gpu.out"); out != nodeNames[1]+"\n" {
		t.Errorf("the job ran on %q", out)
	}
}
