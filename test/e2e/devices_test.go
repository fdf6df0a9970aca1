package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestDevices: partitions and shares of GPUs as generic resources, by their own names and by those
// of NVIDIA's device plugin. Devices that the plugin reports as unhealthy
// leave the plan. (The kubelet of a process node starts no pods with resources of others.)
func TestDevices(t *testing.T) {
	t.Parallel()
	c := start(t, "--slurm-conf", "testdata/devices/slurm.conf")
	c.scriptsInTurn(t, "testdata/devices")
	d := &database{c, t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	report := func(capacity, allocatable object) {
		t.Helper()
		code, text := admin.do(t, http.MethodPatch, "/api/v1/nodes/n2/status",
			object{"status": object{"capacity": capacity, "allocatable": allocatable}},
			"Content-Type", "application/strategic-merge-patch+json")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	until := func(what, want string, args ...string) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			_, out, _ := d.run(args[0], args[1:]...)
			return strings.Contains(out, want)
		})
	}
	all := object{"nvidia.com/gpu": "2", "nvidia.com/mig-1g.5gb": "3", "nvidia.com/gpu.shared": "4"}
	report(all, all)
	until("the resources have Slurm's names", "gpu:2,gpu:1g.5gb:3,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
	report(all, object{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "2"})
	until("fewer are planned with", "gpu:1,gpu:1g.5gb:2,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
	until("the node says why", "Reason=gres/gpu count reported lower than configured (1 < 2); "+
		"gres/gpu:1g.5gb count reported lower than configured (2 < 3)", "scontrol", "show", "node", "n2")
	report(all, all)
	until("all are back", "gpu:2,gpu:1g.5gb:3,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
}

// TestDriverDevices: devices that a driver publishes are planned, and kube-scheduler allocates
// them by claims. The driver is only its ResourceSlices: process nodes prepare no claims.
func TestDriverDevices(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--nodes", "2", "--cpus", "4"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	send := func(method, path string, body any) {
		t.Helper()
		if code, text := admin.do(t, method, path, body, "Content-Type", contentTypes[method]); code > 299 {
			t.Fatalf("%s %s: %d %s", method, path, code, text)
		}
	}
	until := func(what, want string, args ...string) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			_, out, _ := d.run(args[0], args[1:]...)
			return strings.Contains(out, want)
		})
	}
	const resources = "/apis/resource.k8s.io/v1/"
	devices := func(taints ...object) []object {
		return []object{{"name": "d0", "taints": taints}, {"name": "d1"}}
	}
	send(http.MethodPost, resources+"deviceclasses", object{
		"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": object{"name": "any"},
		"spec": object{
			"extendedResourceName": "nvidia.com/gpu",
			"selectors":            []object{{"cel": object{"expression": `device.driver == "gpu.example.com"`}}},
		},
	})
	for _, node := range []string{"n1", "n2"} {
		send(http.MethodPost, resources+"resourceslices", object{
			"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": node},
			"spec": object{
				"driver": "gpu.example.com", "nodeName": node, "devices": devices(),
				"pool": object{"name": node, "generation": 1, "resourceSliceCount": 1},
			},
		})
	}
	for _, node := range []string{"n1", "n2"} {
		until("the node has the devices", "gpu:2", "sinfo", "-h", "-N", "-n", node, "-o", "%G")
	}
	submit := func(args ...string) string {
		t.Helper()
		code, out, errs := d.run("sbatch", append([]string{"--parsable", "-o", "/dev/null"}, args...)...)
		if code != 0 {
			t.Fatal(errs)
		}
		return strings.TrimSpace(out)
	}
	// A gang has the devices of both nodes, each of them once.
	gang := submit("-N2", "--gres=gpu:2", "--wrap", "sleep 600")
	d.awaitState(gang, "RUNNING")
	type claims struct {
		Items []struct {
			Status struct {
				Allocation struct {
					Devices struct {
						Results []struct{ Pool, Device string }
					}
				}
			}
		}
	}
	list := func() (out claims) {
		code, text := admin.do(t, http.MethodGet, resources+"resourceclaims", nil)
		if err := json.Unmarshal([]byte(text), &out); code != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", code, text, err)
		}
		return out
	}
	allocated := map[string]bool{}
	for _, c := range list().Items {
		for _, r := range c.Status.Allocation.Devices.Results {
			allocated[r.Pool+"/"+r.Device] = true
		}
	}
	if len(allocated) != 4 {
		t.Errorf("allocated are %v", allocated)
	}
	next := submit("-n1", "--gres=gpu:1", "--wrap", "true")
	until("the next job waits", "PENDING Resources", "squeue", "-h", "-j", next, "-o", "%T %r")
	d.run("scancel", gang)
	d.awaitEnd(next)
	// A tainted device leaves the plan, and comes back without its taint.
	taint := object{"key": "example.com/broken", "effect": "NoSchedule"}
	send(http.MethodPatch, resources+"resourceslices/n1", object{"spec": object{"devices": devices(taint)}})
	until("the node has one device", "gpu:1\n", "sinfo", "-h", "-N", "-n", "n1", "-o", "%G")
	until("the node says why", "Reason=gres/gpu count reported lower than configured (1 < 2)", "scontrol", "show", "node", "n1")
	both := submit("-N2", "--gres=gpu:2", "--wrap", "true")
	until("a job that needs both waits", "PENDING", "squeue", "-h", "-j", both, "-o", "%T %r")
	send(http.MethodPatch, resources+"resourceslices/n1", object{"spec": object{"devices": devices()}})
	d.awaitEnd(both)
	// Without the driver the job waits and is not lost.
	send(http.MethodDelete, resources+"resourceslices/n1", nil)
	until("the node has no devices", "(null)", "sinfo", "-h", "-N", "-n", "n1", "-o", "%G")
	eventually.Holds(t, "no claim is left", func() bool { return len(list().Items) == 0 })
}

// contentTypes are those of requests, by method.
var contentTypes = map[string]string{
	http.MethodPost: "application/json", http.MethodPatch: "application/merge-patch+json", http.MethodDelete: "application/json",
}
