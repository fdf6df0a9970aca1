//go:build e2ereal

package realnode

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// hardwareVariable makes TestHardware run.
const hardwareVariable = "BERTH_E2E_HARDWARE"

// TestHardware runs jobs on kubelets that refuse pods for their NUMA alignment. n2 shows
// NUMA nodes of CPUs 0-1 and 2-3, of which CPU 3 is reserved. n3 shows NUMA nodes of CPUs
// 0,2 and 1,3, of which 2 and 3 are reserved. The machine need not have CPUs 2 and 3,
// because no job gets them.
func TestHardware(t *testing.T) {
	if os.Getenv(hardwareVariable) == "" {
		t.Skip("without " + hardwareVariable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 18*time.Minute)
	defer cancel()
	s := openSiteOn(t, ctx, map[string]Hardware{
		"n2": {Kubelet: alignedCPUs("single-numa-node", "3"), NUMA: [][]int{{0, 1}, {2, 3}}},
		"n3": {Kubelet: alignedCPUs("restricted", "2-3"), NUMA: [][]int{{0, 2}, {1, 3}}},
	})
	for _, name := range []string{"n2", "n3"} {
		annotate(t, ctx, s, name, wire.AnnotationState, "drain")
		annotate(t, ctx, s, name, wire.AnnotationCPUManager, "static")
	}
	annotate(t, ctx, s, "n1", wire.AnnotationWeight, "9")
	install(t, ctx, s)
	t.Run("one NUMA node", func(t *testing.T) { testSingleNUMANode(t, ctx, s) })
	t.Run("one NUMA node, unknown to the plan", func(t *testing.T) { testUnknownNUMANodes(t, ctx, s) })
	t.Run("few NUMA nodes", func(t *testing.T) { testRestricted(t, ctx, s) })
	t.Run("broken devices", func(t *testing.T) { testBrokenDevices(t, ctx, s) })
	t.Run("devices of two kinds", func(t *testing.T) { testDevicesOfTwoKinds(t, ctx, s) })
}

// alignedCPUs is the configuration of a kubelet that gives CPUs to pods for themselves,
// except those reserved, as the policy of the topology manager requires.
func alignedCPUs(policy, reserved string) map[string]any {
	c := StaticCPUs(map[string]string{"strict-cpu-reservation": "true"})
	delete(c, "kubeReserved")
	c["reservedSystemCPUs"], c["topologyManagerPolicy"] = reserved, policy
	return c
}

// testSingleNUMANode runs a job of two CPUs on n2, whose kubelet would refuse it while another
// job has one of the CPUs that belong together, although two are free.
func testSingleNUMANode(t *testing.T, ctx context.Context, s *Site) {
	annotate(t, ctx, s, "n2", wire.AnnotationTopologyManager, "single-numa-node")
	annotate(t, ctx, s, "n2", wire.AnnotationNUMACPUs, "0-1;2")
	resume(t, ctx, s, "n2")
	defer annotate(t, ctx, s, "n2", wire.AnnotationState, "drain")
	expectExtra(t, ctx, s, "n2", "exclusive cores (static CPU manager), topology manager single-numa-node")
	holder := submitHolder(t, ctx, s, "n2", "single")
	there := submit(t, ctx, s, "-w", "n2", "-n1", "-c2", "--mem=64", "-o", "there.out", "--wrap", showCPUs)
	elsewhere := submit(t, ctx, s, "-n1", "-c2", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	expectNode(t, ctx, s, elsewhere, "n1")
	if out := squeue(t, ctx, s, there); out != "PENDING Resources" {
		t.Errorf("the job that waits for CPUs of one NUMA node is %q", out)
	}
	writeHome(t, "single.go", "")
	waitForState(t, ctx, s, holder, "COMPLETED")
	expectNode(t, ctx, s, there, "n2")
	if out, want := output(t, "there.out"), "script 0-1\ntask 0-1\nCPU_IDs=0-1\n"; out != want {
		t.Errorf("the job wrote %q, want %q", out, want)
	}
	expectRefusals(t, ctx, s, "n2", 0)
	_, err := s.As(ctx, user, user.Home(), "sbatch", "-w", "n2", "-n1", "-c3", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	if err == nil || !strings.Contains(err.Error(), "Requested node configuration is not available") {
		t.Errorf("a job of three CPUs, of which no NUMA node has as many: %v", err)
	}
}

// testUnknownNUMANodes is the same without annotations about the topology: the kubelet of n2
// refuses the job once, and it runs elsewhere.
func testUnknownNUMANodes(t *testing.T, ctx context.Context, s *Site) {
	annotate(t, ctx, s, "n2", wire.AnnotationTopologyManager, "")
	annotate(t, ctx, s, "n2", wire.AnnotationNUMACPUs, "")
	resume(t, ctx, s, "n2")
	defer annotate(t, ctx, s, "n2", wire.AnnotationState, "drain")
	holder := submitHolder(t, ctx, s, "n2", "unknown")
	refused := submit(t, ctx, s, "-n1", "-c2", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	expectNode(t, ctx, s, refused, "n1")
	expectRefusals(t, ctx, s, "n2", 1)
	// Others use the node meanwhile.
	expectNode(t, ctx, s, submit(t, ctx, s, "-w", "n2", "-n1", "--mem=64", "-o", "/dev/null", "--wrap", "true"), "n2")
	// A job that can run nowhere else is tried there again.
	again := submit(t, ctx, s, "-w", "n2", "-n1", "-c2", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	var shown string
	if err := waitFor(ctx, time.Minute, func() bool {
		shown, _ = s.As(ctx, user, user.Home(), "scontrol", "show", "job", again)
		return strings.Contains(shown, " Restarts=1 ")
	}); err != nil || !strings.Contains(shown, "TopologyAffinityError") {
		t.Errorf("the job that n2 refuses (%v):\n%s", err, shown)
	}
	writeHome(t, "unknown.go", "")
	waitForState(t, ctx, s, holder, "COMPLETED")
	expectNode(t, ctx, s, again, "n2")
}

// testRestricted runs jobs on n3, whose kubelet refuses two CPUs always: one of its NUMA nodes
// would be enough for them if none were reserved.
func testRestricted(t *testing.T, ctx context.Context, s *Site) {
	annotate(t, ctx, s, "n3", wire.AnnotationTopologyManager, "restricted")
	annotate(t, ctx, s, "n3", wire.AnnotationNUMACPUs, "0;1")
	resume(t, ctx, s, "n3")
	defer annotate(t, ctx, s, "n3", wire.AnnotationState, "drain")
	id := submit(t, ctx, s, "-n1", "-c2", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	expectNode(t, ctx, s, id, "n1")
	expectRefusals(t, ctx, s, "n3", 0)
	var ids []string
	for _, name := range []string{"a", "b"} {
		ids = append(ids, submit(t, ctx, s, "-w", "n3", "-n1", "--mem=64", "-o", "/dev/null", "--wrap",
			"touch restricted-"+name+"; until [ -e restricted-a ] && [ -e restricted-b ]; do sleep 0.2; done"))
	}
	for _, id := range ids {
		expectNode(t, ctx, s, id, "n3")
	}
	annotate(t, ctx, s, "n3", wire.AnnotationTopologyManager, "")
	id = submit(t, ctx, s, "-n1", "-c2", "--mem=64", "-o", "/dev/null", "--wrap", "true")
	expectNode(t, ctx, s, id, "n1")
	expectRefusals(t, ctx, s, "n3", 1)
}

// resume ends the drain of a node, and waits until it is idle.
func resume(t *testing.T, ctx context.Context, s *Site, node string) {
	t.Helper()
	annotate(t, ctx, s, node, wire.AnnotationState, "")
	var state string
	if err := waitFor(ctx, time.Minute, func() bool {
		state, _ = s.As(ctx, user, user.Home(), "sinfo", "-h", "-n", node, "-p", "main", "-o", "%T")
		return strings.TrimSpace(state) == "idle"
	}); err != nil {
		t.Fatalf("node %s is %s: %v", node, state, err)
	}
}

// submitHolder starts a job of one CPU on the node, which runs until the file NAME.go exists.
func submitHolder(t *testing.T, ctx context.Context, s *Site, node, name string) string {
	t.Helper()
	id := submit(t, ctx, s, "-w", node, "-n1", "--mem=64", "-o", name+".out", "--wrap",
		"echo started; until [ -e "+name+".go ]; do sleep 0.2; done")
	waitForOutput(t, ctx, name+".out", "started\n")
	return id
}

// squeue returns the state and the reason of a job.
func squeue(t *testing.T, ctx context.Context, s *Site, id string) string {
	t.Helper()
	out, err := s.As(ctx, user, user.Home(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T %r")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// expectNode waits until the job has completed, and checks that it ran on the node.
func expectNode(t *testing.T, ctx context.Context, s *Site, id, node string) {
	t.Helper()
	waitForState(t, ctx, s, id, "COMPLETED")
	shown, err := s.As(ctx, user, user.Home(), "scontrol", "show", "job", id)
	if err != nil || !strings.Contains(shown, " NodeList="+node+"\n") {
		t.Errorf("the job did not run on %s (%v):\n%s", node, err, shown)
	}
}

// expectRefusals checks how many pods the kubelet of the node has refused for their NUMA
// alignment since the test began.
func expectRefusals(t *testing.T, ctx context.Context, s *Site, node string, want int) {
	t.Helper()
	events, err := s.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == "TopologyAffinityError" && e.Source.Host == node {
			refused += int(max(1, e.Count))
			t.Logf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	if refused != want {
		t.Errorf("the kubelet of %s refused %d pods, want %d", node, refused, want)
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/var/lib/kubelet/cpu_manager_state", s.nodes[slices.Index(nodeNames, node)].cmd.Process.Pid))
	t.Logf("the CPU manager of %s: %s, %v", node, state, err)
}
