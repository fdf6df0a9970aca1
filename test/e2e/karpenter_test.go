package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/eventually"
)

// The environment of TestKarpenter, which make e2e-karpenter sets: the program of Karpenter
// with its KWOK provider, and the directory of its module.
const (
	envKarpenter       = "BERTH_KARPENTER"
	envKarpenterModule = "BERTH_KARPENTER_MODULE"
)

// whyNoKarpenter is why tests with Karpenter are skipped.
const whyNoKarpenter = "make e2e-karpenter builds Karpenter and runs this test"

// karpenterPools are a pool whose nodes come, one of an instance type that does not exist, one
// of a class of nodes that does not exist, and one that promises more than its instances have.
const karpenterPools = `
- metadata: {name: fine}
  spec:
    nodes: k[1-3]
    resources: {cpu: "2", memory: 1Gi}
    features: [fine]
    labels: {topology.kubernetes.io/zone: test-zone-a}
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 120
    suspendTimeoutSeconds: 2
    suspendTimeSeconds: 2
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
- metadata: {name: wrong}
  spec:
    nodes: w1
    resources: {cpu: "2", memory: 1Gi}
    features: [wrong]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 20
    suspendTimeoutSeconds: 2
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [no-such-type]}
- metadata: {name: sold-out}
  spec:
    nodes: s1
    resources: {cpu: "2", memory: 1Gi}
    features: [soldout]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 600
    suspendTimeoutSeconds: 2
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: no-such-class}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
- metadata: {name: small}
  spec:
    nodes: m1
    resources: {cpu: "64", memory: 1Gi}
    features: [small]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 600
    suspendTimeoutSeconds: 2
    karpenter:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
`

// TestKarpenter runs Karpenter beside Berth. It needs the program (make e2e-karpenter).
func TestKarpenter(t *testing.T) {
	k := newKarpenterCluster(t)
	k.startKarpenter()
	k.follow(k.endPods)
	k.createPools(karpenterPools)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a gang gets its nodes and gives them back", k.gang},
		{"a node that never launches", k.neverLaunches},
		{"no capacity", k.noCapacity},
		{"less than promised", k.lessThanPromised},
		{"a node that is taken away", k.takenAway},
		{"another autoscaler", k.otherAutoscaler},
		{"two ways for one pool", k.twoWays},
	} {
		t.Run(sub.name, sub.run)
	}
}

// newKarpenterCluster starts a local cluster with Karpenter's resource definitions and a class
// of nodes.
func newKarpenterCluster(t *testing.T) *cloudCluster {
	t.Helper()
	k := newCloudCluster(t, envKarpenter, "kwok-", whyNoKarpenter)
	k.install(os.Getenv(envKarpenterModule))
	return k
}

// install creates Karpenter's resource definitions and a class of nodes.
func (k *cloudCluster) install(module string) {
	k.define(module, "pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml")
	class := []byte("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}, spec: {}}")
	k.create("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", class)
}

// karpenterEnv is the environment of Karpenter.
var karpenterEnv = []string{
	"DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=kube-system", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
}

// startKarpenter starts Karpenter. It is killed by the returned function, or with the test.
func (k *cloudCluster) startKarpenter() (kill func()) { return k.startProgram(karpenterEnv) }

// claims returns the names of the NodeClaims.
func (k *cloudCluster) claims() string {
	var list metav1.PartialObjectMetadataList
	k.get("/apis/karpenter.sh/v1/nodeclaims", &list)
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func (k *cloudCluster) succeed(t *testing.T, name string, args ...string) string {
	t.Helper()
	code, out, errs := k.run(name, args...)
	if code != 0 {
		t.Fatalf("%s %v: exit %d: %s", name, args, code, errs)
	}
	return strings.TrimSpace(out)
}

// shows waits until the output of the command has the text.
func (k *cloudCluster) shows(t *testing.T, want, name string, args ...string) {
	t.Helper()
	eventually.Succeeds(t, fmt.Sprintf("%s %v shows %q", name, args, want), func() error {
		code, out, errs := k.run(name, args...)
		if strings.Contains(out, want) {
			return nil
		}
		return fmt.Errorf("exit code %d\n%s%s", code, out, errs)
	})
}

// bound returns the nodes that pods of the job are bound to.
func (k *cloudCluster) bound(id string) (nodes []string) {
	var pods corev1.PodList
	k.get("/api/v1/pods?labelSelector=berth.hpc/job-id="+id, &pods)
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	return nodes
}

// gang submits a job of two nodes, and sees its pods bound to the nodes that Karpenter named.
func (k *cloudCluster) gang(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-N2", "-C", "fine", "-o", "/dev/null", "--wrap", "sleep 1000")
	eventually.Holds(t, "NodeClaims of exactly two nodes", func() bool { return k.claims() == "k1 k2" })
	eventually.Holds(t, "both pods are bound to nodes of Karpenter", func() bool {
		on := k.bound(id)
		for _, name := range on {
			if !strings.HasPrefix(name, "kwok-k") {
				t.Errorf("a pod is bound to %s", name)
			}
		}
		return len(on) == 2
	})
	if out := k.succeed(t, "squeue", "-h", "-j", id, "-o", "%N"); out != "k[1-2]" {
		t.Errorf("squeue shows the nodes %q", out)
	}
	if out := k.succeed(t, "sinfo", "-h", "-N", "-n", "k[1-3]", "-o", "%N %t"); out != "k1 mix\nk2 mix\nk3 idle~" {
		t.Errorf("sinfo shows %q", out)
	}
	for _, n := range k.nodes() {
		if n.Annotations["karpenter.sh/do-not-disrupt"] != "true" {
			t.Errorf("Karpenter may disrupt %s", n.Name)
		}
	}
	k.succeed(t, "scancel", id)
	eventually.Holds(t, "the nodes go when they are idle", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
	k.shows(t, "k1 idle~\nk2 idle~\nk3 idle~", "sinfo", "-h", "-N", "-n", "k[1-3]", "-o", "%N %t")
}

// neverLaunches: what Karpenter says about a NodeClaim that it cannot launch is shown, and the
// NodeClaim is deleted after ResumeTimeout.
func (k *cloudCluster) neverLaunches(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-C", "wrong", "-o", "/dev/null", "--wrap", "true")
	defer k.succeed(t, "scancel", id)
	const why = "not launched: LaunchFailed: "
	k.shows(t, "Reason="+why, "scontrol", "show", "node", "w1")
	k.shows(t, "Reason=ResumeTimeout reached: "+why, "scontrol", "show", "node", "w1")
	eventually.Holds(t, "the NodeClaim goes", func() bool { return k.claims() == "" })
	k.shows(t, "node pool wrong: w1: ResumeTimeout reached: "+why, "berth", "doctor")
	k.shows(t, "PENDING", "squeue", "-h", "-j", id, "-o", "%T")
}

// noCapacity: Karpenter deletes a NodeClaim for which there is no capacity, and the job returns
// to the queue long before ResumeTimeout.
func (k *cloudCluster) noCapacity(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-C", "soldout", "-o", "/dev/null", "--wrap", "true")
	defer k.succeed(t, "scancel", id)
	k.shows(t, "Reason=Karpenter deleted its NodeClaim: InsufficientCapacityError: ", "scontrol", "show", "node", "s1")
	k.shows(t, "PENDING", "squeue", "-h", "-j", id, "-o", "%T")
}

// lessThanPromised: a node that comes with less than its pool promises gets no job, and goes.
func (k *cloudCluster) lessThanPromised(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-C", "small", "-o", "/dev/null", "--wrap", "true")
	defer k.succeed(t, "scancel", id)
	k.shows(t, "Reason=Low CPUs (reported:3900m < configured:64)", "scontrol", "show", "node", "m1")
	eventually.Holds(t, "the node goes", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
	k.shows(t, "PENDING", "squeue", "-h", "-j", id, "-o", "%T")
}

// takenAway: the NodeClaim of a node with a job is deleted, as when a spot instance is taken
// away. The job gets another node, and no node is left behind.
func (k *cloudCluster) takenAway(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "--requeue", "-C", "fine", "-o", "/dev/null", "--wrap", "sleep 1000")
	var first string
	eventually.Holds(t, "the job has a node", func() bool {
		for _, n := range k.bound(id) {
			first = n
		}
		return first != ""
	})
	k.request(t, http.MethodDelete, "/apis/karpenter.sh/v1/nodeclaims/"+k.claims(), nil, nil)
	eventually.Holds(t, "the job has another node", func() bool {
		on := k.bound(id)
		return len(on) == 1 && on[0] != first
	})
	k.succeed(t, "scancel", id)
	eventually.Holds(t, "no node is left", func() bool { return k.claims() == "" && len(k.nodes()) == 0 })
}

// otherAutoscaler: a node of the pool that a NodePool of Karpenter also manages.
func (k *cloudCluster) otherAutoscaler(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-C", "fine", "-w", "k3", "-o", "/dev/null", "--wrap", "sleep 1000")
	defer k.succeed(t, "scancel", id)
	name := ""
	eventually.Holds(t, "the node comes", func() bool {
		for _, n := range k.nodes() {
			name = n.Name
		}
		return name != "" && strings.Contains(k.succeed(t, "sinfo", "-h", "-N", "-n", "k3", "-t", "cloud", "-o", "%t"), "mix")
	})
	k.request(t, http.MethodPatch, "/api/v1/nodes/"+name,
		object{"metadata": object{"labels": object{"karpenter.sh/nodepool": "general"}}}, nil)
	const why = "Karpenter removes it, too (label karpenter.sh/nodepool=general)"
	k.shows(t, "Reason="+why, "scontrol", "show", "node", "k3")
	k.shows(t, "node pool fine: k3: "+why, "berth", "doctor")
}

// twoWays: a pool cannot have two providers.
func (k *cloudCluster) twoWays(t *testing.T) {
	code, text := k.admin.do(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/nodepools/fine",
		object{"spec": object{"program": object{"resume": "/a", "suspend": "/b"}}})
	if code != http.StatusUnprocessableEntity || !strings.Contains(text, "program karpenter") {
		t.Errorf("%d %s", code, text)
	}
}
