package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestNodeRemovalIsAnnounced: when a taint says that a node will be taken away, jobs there get
// the signal of --signal. One that may be requeued starts again elsewhere, one that must not
// runs on, and the node gets no other job until the taint is gone.
func TestNodeRemovalIsAnnounced(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes", "2", "--cpus", "2")
	admin, _ := callerOf(t, filepath.Join(c.state, "kubeconfig"))
	patch := func(path string, change object) {
		t.Helper()
		code, text := admin.do(t, http.MethodPatch, path, change, "Content-Type", "application/merge-patch+json")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	home := t.TempDir()
	run := func(command string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", command)
		cmd.Env, cmd.Dir = c.environ(home), home
		out, err := cmd.Output()
		if err != nil {
			t.Logf("%s: %v", command, err)
		}
		return strings.TrimSpace(string(out))
	}
	until := func(what, want, command string) {
		t.Helper()
		last := ""
		t.Cleanup(func() {
			if last != want {
				t.Logf("%s: last %q, want %q", what, last, want)
			}
		})
		eventually.Holds(t, what, func() bool { last = run(command); return last == want })
	}
	cluster := object{
		"apiVersion": "berth.hpc/v1alpha1", "kind": "Cluster", "metadata": object{"name": "berth"},
		"spec": object{"removalGraceSeconds": 1},
	}
	if code, text := admin.do(t, http.MethodPost, "/apis/berth.hpc/v1alpha1/clusters", cluster); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	const script = `trap 'echo signalled on $SLURMD_NODENAME; exit 0' USR1; echo started; while :; do sleep 0.1; done`
	moves := run("sbatch --parsable -w n1 -o moves.txt --wrap 'sleep 1000'")
	stays := run(`sbatch --parsable -w n1 --no-requeue --signal=B:USR1@1 -o stays.txt --wrap "` +
		strings.ReplaceAll(script, "$", `\$`) + `"`)
	until("both run", "RUNNING RUNNING", "echo $(squeue -h -o %T)")
	until("the script has its trap", "started", "cat stays.txt")

	patch("/api/v1/nodes/n1", object{"spec": object{"taints": []object{
		{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"},
	}}})
	until("the job that has asked for a signal gets it", "started\nsignalled on n1", "cat stays.txt")
	until("it has ended", "COMPLETED", "squeue -h -t all -o %T -j "+stays)
	until("the other job waits for the node", "PENDING", "squeue -h -o %T -j "+moves)
	until("it was requeued", "Restarts=1", "scontrol show job "+moves+" | grep -o 'Restarts=[0-9]*'")
	until("the node is drained", "drained aws-node-termination-handler/spot-itn: the node will be removed",
		"sinfo -h -n n1 -o '%T %E'")
	patch("/api/v1/nodes/n1", object{"spec": object{"taints": nil}})
	until("the job starts again", "RUNNING", "squeue -h -o %T -j "+moves)
}
