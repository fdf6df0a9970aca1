package e2e

import (
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
