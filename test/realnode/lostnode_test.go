//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// awayFor is how long a node is disconnected: for longer than Kubernetes needs to call it
// unreachable, and for more than 45 s after the last keep-alive of a connection between agents.
const awayFor = 80 * time.Second

// testNodeAway disconnects a node. The job there goes on, with a step over all nodes.
func testNodeAway(t *testing.T, ctx context.Context, s *Site) {
	id := submit(t, ctx, s, "-N3", "--no-requeue", "-o", "away.out", "--wrap",
		"srun sh -c 'echo started; until [ -e back ]; do sleep 0.2; done; echo done'")
	waitForOutput(t, ctx, "away.out", strings.Repeat("started\n", 3))
	state := func() string {
		out, _ := s.As(ctx, operator, operator.Home(), "sinfo", "-h", "-p", "main", "-N", "-n", "n3", "-o", "%t")
		return strings.TrimSpace(out)
	}
	began := time.Now()
	if err := s.nodes[2].setLink("down"); err != nil {
		t.Fatal(err)
	}
	defer s.nodes[2].setLink("up") //nolint:errcheck // of a test that has failed
	if err := waitFor(ctx, 2*time.Minute, func() bool { return strings.HasSuffix(state(), "*") }); err != nil {
		t.Fatalf("the node is %s: %v", state(), err)
	}
	if got := state(); got != "mix*" && got != "alloc*" {
		t.Errorf("the node is %s", got)
	}
	time.Sleep(time.Until(began.Add(awayFor))) // how long the fault lasts
	waitUntil(t, ctx, s, id, "RUNNING")
	if err := s.nodes[2].setLink("up"); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(ctx, 2*time.Minute, func() bool { return !strings.HasSuffix(state(), "*") }); err != nil {
		t.Fatalf("the node is %s: %v", state(), err)
	}
	t.Logf("it was away for %.0f s", time.Since(began).Seconds())
	writeHome(t, "back", "")
	waitForState(t, ctx, s, id, "COMPLETED")
	if out := output(t, "away.out"); strings.Count(out, "done\n") != 3 {
		t.Errorf("the job wrote %q", out)
	}
}

// setLink connects the node with the network again, or disconnects it.
func (n *node) setLink(state string) error {
	return ip("link set veth" + strconv.Itoa(n.spec.Index) + " " + state) // up or down
}

// testLostNode makes a node fail under a job that must not be requeued.
func testLostNode(t *testing.T, ctx context.Context, s *Site) {
	setSlurmdTimeout(t, ctx, s, 5)
	id := submit(t, ctx, s, "-N3", "--no-requeue", "-o", "lost.out", "--wrap", "echo started; srun sleep 600")
	waitForOutput(t, ctx, "lost.out", "started\n")
	if err := s.nodes[2].unplug(); err != nil {
		t.Fatal(err)
	}
	waitForState(t, ctx, s, id, "NODE_FAIL")
}

// setSlurmdTimeout changes how long jobs of unreachable nodes are waited for.
func setSlurmdTimeout(t *testing.T, ctx context.Context, s *Site, seconds int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"slurmdTimeoutSeconds": %d}}`, seconds)
	err := s.Client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis/berth.hpc/v1alpha1/clusters/berth").
		Body(patch).Do(ctx).Error()
	if err != nil {
		t.Fatal(err)
	}
}
