package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestNodeConditions: a condition that node-problem-detector reports drains a node with its
// message as reason, and its end resumes the node.
func TestNodeConditions(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--nodes", "1", "--cpus", "1"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	report := func(status string) {
		t.Helper()
		condition := object{"type": "KernelDeadlock", "status": status, "reason": "TaskHung", "message": "task stuck for 120 s"}
		code, text := admin.do(t, http.MethodPatch, "/api/v1/nodes/n1/status",
			object{"status": object{"conditions": []object{condition}}}, "Content-Type", "application/strategic-merge-patch+json")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	until := func(what, want string, args ...string) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			_, out, _ := d.run(args[0], args[1:]...)
			return strings.TrimSpace(out) == want
		})
	}
	report("True")
	until("the node is drained", "drained|KernelDeadlock: task stuck for 120 s|root", "sinfo", "-h", "-o", "%T|%E|%u")
	id := d.submit()
	report("False")
	d.awaitEnd(id)
	until("the node is resumed", "idle|none|Unknown", "sinfo", "-h", "-o", "%T|%E|%u")
}
