package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestPodDeleted deletes a pod of a job while its step runs, as an administrator or the
// drain of a node does: the step and the job end with Slurm's messages, and no process
// is left.
func TestPodDeleted(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes", "2", "--cpus", "2")
	home := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.bin, args[0]), args[1:]...)
		cmd.Env, cmd.Dir = c.environ(home), home
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	output := filepath.Join(home, "out")
	has := func(text string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(output) // it need not be there yet
			return strings.Contains(string(b), text)
		}
	}
	id := run("sbatch", "--parsable", "--no-requeue", "-N2", "--ntasks-per-node=1", "-o", output, "--wrap", "srun -l sh -c 'echo go; exec sleep 61235'")
	eventually.Holds(t, "both tasks run", func() bool { return has("0: go")() && has("1: go")() })

	admin, _ := callerOf(t, filepath.Join(c.state, "kubeconfig"))
	namespace := "/api/v1/namespaces/user-" + strings.TrimSpace(run("squeue", "-h", "-j", id, "-o", "%u")) + "/pods"
	_, text := admin.do(t, "GET", namespace+"?labelSelector=berth.hpc/job-id="+id, nil)
	name := ""
	for part := range strings.SplitSeq(text, `"name":"`) {
		if pod, _, _ := strings.Cut(part, `"`); strings.HasPrefix(pod, "job-"+id+"-1-n0-0-1-") {
			name = pod
		}
	}
	if code, text := admin.do(t, "DELETE", namespace+"/"+name, nil); name == "" || code != 200 {
		t.Fatalf("delete pod %q: %d %.500s", name, code, text)
	}
	eventually.Holds(t, "the job ends", func() bool { return run("squeue", "-h", "-t", "all", "-j", id, "-o", "%T %r") == "NODE_FAIL NodeDown" })
	eventually.Holds(t, "the output has the message", has(fmt.Sprintf("slurmstepd: error: *** STEP %s.0 ON n1 CANCELLED AT ", id)))
	eventually.Holds(t, "the nodes are idle", func() bool { return run("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	for _, want := range []string{"DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "srun: error: n1: task 0: Terminated"} {
		if b, _ := os.ReadFile(output); !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if out, err := exec.Command("pgrep", "-f", "^[^ ]*sleep 61235").Output(); err == nil {
		t.Errorf("a task was left running: %s", out)
	}
}
