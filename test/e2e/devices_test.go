package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestDevices: partitions and shares of GPUs as generic resources, by their own names and by those
// of NVIDIA's device plugin. Devices that the plugin reports as unhealthy leave the plan.
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
	submit := func(args ...string) string {
		t.Helper()
		code, out, errs := d.run("sbatch", append([]string{"--parsable", "-w", "n2", "-n1", "-o", "/dev/null"}, args...)...)
		if code != 0 {
			t.Fatal(errs)
		}
		return strings.TrimSpace(out)
	}
	all := object{"nvidia.com/gpu": "2", "nvidia.com/mig-1g.5gb": "3", "nvidia.com/gpu.shared": "4"}
	report(all, all)
	until("the resources have Slurm's names", "gpu:2,gpu:1g.5gb:3,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
	running := submit("--gres=gpu:1g.5gb:3", "--wrap", "sleep 600")
	d.awaitState(running, "RUNNING")
	report(all, object{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "2"})
	until("fewer are planned with", "gpu:1,gpu:1g.5gb:2,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
	until("the node says why", "Reason=gres/gpu count reported lower than configured (1 < 2); "+
		"gres/gpu:1g.5gb count reported lower than configured (2 < 3)", "scontrol", "show", "node", "n2")
	until("the job goes on", "RUNNING", "squeue", "-h", "-j", running, "-o", "%T")
	one := submit("--gres=shard:2", "--wrap", "true")
	d.awaitEnd(one)
	report(all, all)
	until("all are back", "gpu:2,gpu:1g.5gb:3,shard:4\n", "sinfo", "-h", "-N", "-n", "n2", "-o", "%G")
	if code, out, _ := d.run("scancel", running); code != 0 {
		t.Error(out)
	}
}
