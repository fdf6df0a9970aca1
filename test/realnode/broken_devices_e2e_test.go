//go:build e2ereal

package realnode

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// unprepared is the reason of the kubelet's event about a pod whose devices its driver cannot
// prepare.
const unprepared = "FailedPrepareDynamicResources"

// testBrokenDevices runs jobs with devices that the driver of n3, the preferred node, cannot
// prepare for a while.
func testBrokenDevices(t *testing.T, ctx context.Context, s *Site) {
	const broken = 2 // the index of n3
	createDeviceClass(t, ctx, s, deviceClass)
	resume(t, ctx, s, "n3")
	defer annotate(t, ctx, s, "n3", wire.AnnotationState, "drain")
	setDevices(t, s, 0, []string{"gpu-0"}, nil)
	defer setDevices(t, s, 0, nil, nil)
	setDevices(t, s, broken, []string{"gpu-0", "gpu-1"}, nil)
	defer setDevices(t, s, broken, nil, nil)
	waitForGRES(t, ctx, s, 0, "gpu:sim:1")
	waitForGRES(t, ctx, s, broken, "gpu:sim:2")

	t.Run("repaired in time", func(t *testing.T) {
		setBroken(t, s, broken, "gpu-0", "gpu-1")
		id := submit(t, ctx, s, "-w", "n3", "-n1", "--mem=64", "--gres=gpu:sim:1", "-o", "repaired.out", "--wrap", showDevices)
		expectStory(t, ctx, s, id, "does not answer")
		setBroken(t, s, broken)
		expectNode(t, ctx, s, id, "n3")
		if out := output(t, "repaired.out"); !strings.HasPrefix(out, "DRA_DEVICE_gpu_") || strings.Count(out, "\n") != 1 {
			t.Errorf("the job wrote %q", out)
		}
		expectRestarts(t, ctx, s, id, "0")
		expectNoClaims(t, ctx, s)
	})
	t.Run("cancelled", func(t *testing.T) {
		setBroken(t, s, broken, "gpu-0", "gpu-1")
		id := submit(t, ctx, s, "-w", "n3", "-n1", "--mem=64", "--gres=gpu:sim:1", "-o", "/dev/null", "--wrap", "true")
		expectStory(t, ctx, s, id, "does not answer")
		if out, err := s.As(ctx, user, user.Home(), "scancel", id); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		waitForState(t, ctx, s, id, "CANCELLED")
		expectNoClaims(t, ctx, s)
		testNothingLeft(t, ctx, s)
	})
	t.Run("elsewhere", func(t *testing.T) {
		setBroken(t, s, broken, "gpu-0", "gpu-1")
		moves := submit(t, ctx, s, "-n1", "--mem=64", "--gres=gpu:sim:1", "-o", "moves.out", "--wrap", showDevices)
		stays := submit(t, ctx, s, "-w", "n3", "-n1", "--mem=64", "--gres=gpu:sim:1", "-o", "stays.out", "--wrap", showDevices)
		expectStory(t, ctx, s, moves, "does not answer")
		expectStory(t, ctx, s, stays, "does not answer")
		expectNode(t, ctx, s, moves, "n1")
		expectRestarts(t, ctx, s, moves, "1")
		expectStory(t, ctx, s, moves, "were not prepared within 1m0s: "+unprepared)
		doctor, err := s.As(ctx, user, user.Home(), "berth", "doctor")
		if err != nil || !strings.Contains(doctor, "n3: the devices of 2 jobs were not prepared") {
			t.Errorf("berth doctor (%v):\n%s", err, doctor)
		}
		// The node runs jobs without devices meanwhile.
		expectNode(t, ctx, s, submit(t, ctx, s, "-n1", "--mem=64", "-o", "/dev/null", "--wrap", "true"), "n3")
		var shown string
		if err := waitFor(ctx, time.Minute, func() bool {
			shown, _ = s.As(ctx, user, user.Home(), "scontrol", "show", "job", stays)
			return strings.Contains(shown, "JobState=PENDING Reason=") && !strings.Contains(shown, "Reason=None")
		}); err != nil || !strings.Contains(shown, unprepared) || !strings.Contains(shown, "does not answer") {
			t.Errorf("the job that can run nowhere else (%v):\n%s", err, shown)
		}
		setBroken(t, s, broken)
		expectNode(t, ctx, s, stays, "n3")
		expectNoClaims(t, ctx, s)
	})
}

// showDevices is a script that prints the devices of its container.
const showDevices = `env | grep ^DRA_DEVICE_ | sort`

// setBroken makes the driver of the node unable to prepare the devices with these names, and
// able to prepare all others.
func setBroken(t *testing.T, s *Site, node int, names ...string) {
	t.Helper()
	file := s.nodes[node].spec.brokenDevices()
	if err := errors.Join(os.WriteFile(file+".new", []byte(strings.Join(names, "\n")), 0o644),
		os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
}

// expectStory waits until berth events says that about the job.
func expectStory(t *testing.T, ctx context.Context, s *Site, id, want string) {
	t.Helper()
	var story string
	if err := waitFor(ctx, time.Minute, func() bool {
		story, _ = s.As(ctx, user, user.Home(), "berth", "events", id)
		return strings.Contains(story, want)
	}); err != nil {
		t.Fatalf("berth events does not say %q: %v\n%s", want, err, story)
	}
	t.Logf("berth events:\n%s", story)
}

// expectRestarts checks how often a job was requeued.
func expectRestarts(t *testing.T, ctx context.Context, s *Site, id, want string) {
	t.Helper()
	shown, err := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
	if err != nil || !strings.Contains(shown, " Restarts="+want+" ") {
		t.Errorf("scontrol show job (%v):\n%s", err, shown)
	}
}

// expectNoClaims waits until no claim for devices is left.
func expectNoClaims(t *testing.T, ctx context.Context, s *Site) {
	t.Helper()
	left := 0
	if err := waitFor(ctx, time.Minute, func() bool {
		claims, err := s.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			left = len(claims.Items)
		}
		return err == nil && left == 0
	}); err != nil {
		t.Errorf("%d claims are left: %v", left, err)
	}
}

// testDevicesOfTwoKinds runs a job with devices of two classes of one driver.
func testDevicesOfTwoKinds(t *testing.T, ctx context.Context, s *Site) {
	createDeviceClass(t, ctx, s, deviceClass)
	createDeviceClass(t, ctx, s, secondClass)
	setDevices(t, s, 0, []string{"gpu-0", "gpu-1", "nic-0", "nic-1"}, nil)
	defer setDevices(t, s, 0, nil, nil)
	waitForGRES(t, ctx, s, 0, "gpu:sim:2,nic:2")
	id := submit(t, ctx, s, "-w", "n1", "-n1", "--gres=gpu:sim:2,nic:1", "-o", "kinds.out", "--wrap", showDevices+"; srun -n1 "+
		"sh -c '"+showDevices+"'; until [ -e kinds.go ]; do sleep 0.2; done")
	const want = "DRA_DEVICE_gpu_0=gpu-0\nDRA_DEVICE_gpu_1=gpu-1\nDRA_DEVICE_nic_0=nic-0\n"
	waitForOutput(t, ctx, "kinds.out", want+want)
	if node, err := s.As(ctx, user, user.Home(), "scontrol", "-d", "show", "node", "n1"); err != nil ||
		!strings.Contains(node, "GresUsed=gpu:sim:2,nic:1") {
		t.Errorf("scontrol show node (%v):\n%s", err, node)
	}
	// The other network card is free, and no GPU is.
	second := submit(t, ctx, s, "-w", "n1", "-n1", "--gres=nic:1", "-o", "nic.out", "--wrap", showDevices)
	waitForState(t, ctx, s, second, "COMPLETED")
	if out := output(t, "nic.out"); out != "DRA_DEVICE_nic_1=nic-1\n" {
		t.Errorf("the job of one network card wrote %q", out)
	}
	third := submit(t, ctx, s, "-w", "n1", "-n1", "--gres=gpu:1,nic:1", "-o", "third.out", "--wrap", showDevices)
	if out := squeue(t, ctx, s, third); !strings.HasPrefix(out, "PENDING") {
		t.Errorf("a job of one of both is %q", out)
	}
	writeHome(t, "kinds.go", "")
	waitForState(t, ctx, s, id, "COMPLETED")
	waitForState(t, ctx, s, third, "COMPLETED")
	if out := output(t, "third.out"); strings.Count(out, "DRA_DEVICE_gpu_") != 1 || strings.Count(out, "DRA_DEVICE_nic_") != 1 {
		t.Errorf("the job of one of both wrote %q", out)
	}
	expectNoClaims(t, ctx, s)
}
