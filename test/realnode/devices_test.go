//go:build e2ereal

package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deviceModels are the models of devices, by the first part of their names. There is a class for
// each.
var deviceModels = map[string]string{"gpu": deviceClass, "nic": secondClass}

// setDevices makes the driver of the node publish devices with these names, of which those in
// tainted have a taint. Without names it ends.
func setDevices(t *testing.T, s *Site, node int, names, tainted []string) {
	t.Helper()
	file := s.nodes[node].spec.devices()
	if len(names) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	var list []resourcev1.Device
	for _, name := range names {
		kind, _, _ := strings.Cut(name, "-")
		model := deviceModels[kind]
		d := resourcev1.Device{Name: name,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}}}
		if slices.Contains(tainted, name) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "example.com/unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		list = append(list, d)
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file+".new", b, 0o644), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
}

// createDeviceClass creates the class of the devices of that name and model.
func createDeviceClass(t *testing.T, ctx context.Context, s *Site, name string) {
	t.Helper()
	expression := `device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "` + name + `"`
	_, err := s.Client.ResourceV1().DeviceClasses().Create(ctx, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// waitForGRES waits until sinfo prints the generic resources for the node.
func waitForGRES(t *testing.T, ctx context.Context, s *Site, node int, want string) {
	t.Helper()
	var gres string
	err := waitFor(ctx, 2*time.Minute, func() bool {
		gres, _ = s.As(ctx, user, user.Home(), "sinfo", "-h", "-N", "-p", "main", "-n", nodeNames[node], "-o", "%G")
		return strings.TrimSpace(gres) == want
	})
	if err != nil {
		t.Fatalf("sinfo prints %q for %s, want %s: %v", gres, nodeNames[node], want, err)
	}
}

// testDevices runs jobs with devices of a driver of dynamic resource allocation.
func testDevices(t *testing.T, ctx context.Context, s *Site) {
	show := func(command string, args ...string) string {
		t.Helper()
		out, err := s.As(ctx, user, user.Home(), command, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	createDeviceClass(t, ctx, s, deviceClass)
	for node := range 2 {
		setDevices(t, s, node, []string{"gpu-0", "gpu-1"}, nil)
		defer setDevices(t, s, node, nil, nil)
	}
	other := "" // what other tests have left on the second node
	if gres := show("sinfo", "-h", "-N", "-p", "main", "-n", nodeNames[1], "-o", "%G"); strings.Contains(gres, "a100") {
		other = "gpu:a100:2,"
	}
	waitForGRES(t, ctx, s, 0, "gpu:sim:2")
	waitForGRES(t, ctx, s, 1, other+"gpu:sim:2")

	// Two jobs on a node have different devices.
	var ids []string
	script := `env | sed -n 's/^DRA_DEVICE_.*=//p'; echo $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE; until [ -e dra-go ]; do sleep 0.2; done`
	for _, name := range []string{"dra-a.out", "dra-b.out"} {
		ids = append(ids, submit(t, ctx, s, "-w", nodeNames[0], "--gres=gpu:sim:1", "-o", name, "--wrap", script))
	}
	var devices []string
	for _, name := range []string{"dra-a.out", "dra-b.out"} {
		var text []byte
		if err := waitFor(ctx, time.Minute, func() bool {
			text, _ = os.ReadFile(filepath.Join(user.Home(), name))
			return strings.Count(string(text), "\n") == 2
		}); err != nil {
			t.Fatalf("%s: %q, %v", name, text, err)
		}
		t.Logf("%s: %q", name, text)
		device, _, _ := strings.Cut(string(text), "\n")
		devices = append(devices, device)
	}
	if slices.Sort(devices); !slices.Equal(devices, []string{"gpu-0", "gpu-1"}) {
		t.Errorf("the jobs have the devices %q", devices)
	}
	claims, err := s.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(claims.Items) != 2 {
		t.Errorf("%d claims, %v", len(claims.Items), err)
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if c.Status.Allocation == nil || len(c.Status.Allocation.Devices.Results) != 1 || len(c.Status.ReservedFor) != 1 {
			t.Errorf("claim %s: %+v", c.Name, c.Status)
		}
	}
	node := show("scontrol", "-d", "show", "node", nodeNames[0])
	if !strings.Contains(node, "GresUsed=gpu:sim:2") {
		t.Errorf("scontrol show node:\n%s", node)
	}
	third := submit(t, ctx, s, "-w", nodeNames[0], "--gres=gpu:sim:1", "-o", "dra-c.out", "--wrap", "true")
	if state := show("squeue", "-h", "-j", third, "-o", "%T"); state != "PENDING\n" {
		t.Errorf("a third job is %s", state)
	}
	// A device that is tainted leaves the plan; the jobs that run keep theirs.
	setDevices(t, s, 0, []string{"gpu-0", "gpu-1"}, []string{"gpu-0"})
	waitForGRES(t, ctx, s, 0, "gpu:sim:1")
	node = show("scontrol", "show", "node", nodeNames[0])
	if !strings.Contains(node, "Reason=gres/gpu:sim count reported lower than configured (1 < 2)") {
		t.Errorf("scontrol show node:\n%s", node)
	}
	both := submit(t, ctx, s, "-N2", "--gres=gpu:sim:2", "-w", nodeNames[0]+","+nodeNames[1], "-o", "dra-d.out", "--wrap",
		`srun sh -c "env | sed -n 's/^DRA_DEVICE_.*=//p' | sort | xargs echo \$(hostname)" | sort`)
	writeHome(t, "dra-go", "")
	for _, id := range append(ids, third) {
		waitForState(t, ctx, s, id, "COMPLETED")
	}
	reason := show("squeue", "-h", "-j", both, "-o", "%T %r")
	t.Logf("a job of two devices on a node with one: %s", reason)
	if !strings.HasPrefix(reason, "PENDING ") {
		t.Errorf("a job that needs both devices is %s", reason)
	}
	// A gang has devices on both nodes.
	setDevices(t, s, 0, []string{"gpu-0", "gpu-1"}, nil)
	waitForState(t, ctx, s, both, "COMPLETED")
	if out, want := output(t, "dra-d.out"), nodeNames[0]+" gpu-0 gpu-1\n"+nodeNames[1]+" gpu-0 gpu-1\n"; out != want {
		t.Errorf("the gang has %q, want %q", out, want)
	}
	if tres := show("sacct", "-n", "-X", "-P", "-j", both, "-o", "AllocTRES"); !strings.Contains(tres, "gres/gpu:sim=4") {
		t.Errorf("sacct: %s", tres)
	}
	// No claim is left.
	if err := waitFor(ctx, time.Minute, func() bool {
		claims, err = s.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(claims.Items) == 0
	}); err != nil {
		t.Errorf("%d claims are left: %v", len(claims.Items), err)
	}
}

// testDriverGone ends the driver of a node: a job that needs its devices waits with a reason until
// the driver is back.
func testDriverGone(t *testing.T, ctx context.Context, s *Site) {
	createDeviceClass(t, ctx, s, deviceClass)
	setDevices(t, s, 0, []string{"gpu-0"}, nil)
	waitForGRES(t, ctx, s, 0, "gpu:sim:1")
	first := submit(t, ctx, s, "-w", nodeNames[0], "--gres=gpu:sim:1", "-o", "gone-a.out", "--wrap",
		"until [ -e gone-go ]; do sleep 0.2; done")
	waitUntil(t, ctx, s, first, "RUNNING")
	id := submit(t, ctx, s, "-w", nodeNames[0], "--gres=gpu:sim:1", "-o", "gone-b.out", "--wrap", "env | grep ^DRA_DEVICE_")
	setDevices(t, s, 0, nil, nil)
	waitForGRES(t, ctx, s, 0, "(null)") // the kubelet deletes what a driver published half a minute later
	writeHome(t, "gone-go", "")
	waitForState(t, ctx, s, first, "COMPLETED")
	shown, err := s.As(ctx, user, user.Home(), "squeue", "-h", "-j", id, "-o", "%T %r")
	t.Logf("without the driver: %s", shown)
	if m, _ := regexp.MatchString(`^PENDING [A-Z]\w+\n$`, shown); !m || strings.Contains(shown, "None") {
		t.Errorf("the job is %s, %v", shown, err)
	}
	setDevices(t, s, 0, []string{"gpu-0"}, nil)
	waitForState(t, ctx, s, id, "COMPLETED")
	if out := output(t, "gone-b.out"); out != "DRA_DEVICE_gpu_0=gpu-0\n" {
		t.Errorf("the job wrote %q", out)
	}
	setDevices(t, s, 0, nil, nil)
}
