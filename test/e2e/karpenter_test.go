package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/eventually"
)

// The environment of TestKarpenter, which make e2e-karpenter sets: the program of Karpenter
// with its KWOK provider, and the directory of its module.
const (
	envKarpenter       = "BERTH_KARPENTER"
	envKarpenterModule = "BERTH_KARPENTER_MODULE"
)

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

// cloudCluster is a local cluster beside which something brings nodes that have no kubelet.
type cloudCluster struct {
	*database
	admin *caller
	ctx   context.Context // of requests beside the test's own

	program  string               // what brings nodes
	prefix   string               // of the names of its nodes
	reported map[string]time.Time // when nodes were reported ready; used by the kubelets only
}

// try sends a request that may fail, and returns the answer's status code and body.
func (k *cloudCluster) try(method, path string, body any, kind string) (code int, text []byte) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil
	}
	r, err := http.NewRequestWithContext(k.ctx, method, k.admin.base+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Content-Type", kind)
	resp, err := k.admin.http.Do(r)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, _ = io.ReadAll(resp.Body)
	return resp.StatusCode, text
}

// newKarpenterCluster starts a local cluster with Karpenter's resource definitions and a class
// of nodes.
func newKarpenterCluster(t *testing.T) *cloudCluster {
	t.Helper()
	k := newCloudCluster(t, envKarpenter, "kwok-", "make e2e-karpenter builds Karpenter and runs this test")
	k.install(os.Getenv(envKarpenterModule))
	return k
}

// newCloudCluster starts a local cluster for the program that the variable names, which brings
// nodes whose names have the prefix. Without the variable the test is skipped.
func newCloudCluster(t *testing.T, variable, prefix, why string) *cloudCluster {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip(why)
	}
	d := &database{start(t, "--slurm-conf", "testdata/pools/slurm.conf"), t, "", ""}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	k := &cloudCluster{database: d, ctx: ctx, program: program, prefix: prefix, reported: map[string]time.Time{}}
	k.admin, _ = callerOf(t, filepath.Join(d.state, "kubeconfig"))
	return k
}

// request sends a request, which must succeed, and decodes the answer into out (nil: nothing).
func (k *cloudCluster) request(t *testing.T, method, path string, body, out any) {
	t.Helper()
	code, text := k.admin.do(t, method, path, body)
	if code >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
}

// install creates Karpenter's resource definitions and a class of nodes.
func (k *cloudCluster) install(module string) {
	k.define(module, "pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml")
	class := []byte("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}, spec: {}}")
	k.create("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", class)
}

// define creates the resource definitions in files of a directory.
func (k *cloudCluster) define(dir string, patterns ...string) {
	k.t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			k.t.Fatalf("no resource definitions in %s/%s (%v)", dir, pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				k.t.Fatal(err)
			}
			k.create(definitions, data)
		}
	}
}

// definitions is the path of resource definitions.
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// startKarpenter starts Karpenter. It is killed by the returned function, or with the test.
func (k *cloudCluster) startKarpenter() (kill func()) {
	return k.startProgram([]string{
		"DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=kube-system", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
	})
}

// startProgram starts what brings nodes. It is killed by the returned function, or with the
// test, which then shows the end of its log if it has failed.
func (k *cloudCluster) startProgram(env []string, args ...string) (kill func()) {
	t := k.t
	log, err := os.OpenFile(filepath.Join(k.state, "program.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(k.program, args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+filepath.Join(k.state, "kubeconfig")), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	t.Cleanup(func() {
		kill()
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the log of %s ends with\n%s", k.program, data[max(0, len(data)-6000):])
		}
	})
	return kill
}

// createPools creates NodePools from a list in YAML.
func (k *cloudCluster) createPools(list string) {
	var pools []object
	if err := yaml.Unmarshal([]byte(list), &pools); err != nil {
		k.t.Fatal(err)
	}
	for _, p := range pools {
		p["apiVersion"], p["kind"] = "berth.hpc/v1alpha1", "NodePool"
		k.request(k.t, http.MethodPost, "/apis/berth.hpc/v1alpha1/nodepools", p, nil)
	}
}

// create creates an object when the API server has its kind.
func (k *cloudCluster) create(path string, manifest []byte) {
	k.t.Helper()
	var o object
	if err := yaml.Unmarshal(manifest, &o); err != nil {
		k.t.Fatal(err)
	}
	eventually.Holds(k.t, "creation of "+path, func() bool {
		code, text := k.admin.do(k.t, http.MethodPost, path, o)
		if code != http.StatusCreated && code != http.StatusNotFound && code != http.StatusConflict {
			k.t.Fatalf("%s: %d %s", path, code, text)
		}
		return code != http.StatusNotFound
	})
}

// follow does until the test ends what kubelets do on the nodes that have none: it
// reports them ready, and calls pods with the pods there.
func (k *cloudCluster) follow(pods func([]corev1.Pod)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			k.reportAll(k.nodes())
			var list corev1.PodList
			k.get("/api/v1/pods", &list)
			pods(slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Spec.NodeName, k.prefix) }))
		}
	}()
	k.t.Cleanup(func() { close(stop); <-stopped })
}

// endPods ends pods that are deleted.
func (k *cloudCluster) endPods(pods []corev1.Pod) {
	for i := range pods {
		if p := &pods[i]; p.DeletionTimestamp != nil {
			k.try(http.MethodDelete, podPath(p), object{"gracePeriodSeconds": 0}, "application/json")
		}
	}
}

func podPath(p *corev1.Pod) string { return "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name }

// heartbeat is how often a node is reported ready.
const heartbeat = 15 * time.Second

// reportAll reports the nodes ready whose report is due, several at a time.
func (k *cloudCluster) reportAll(nodes []corev1.Node) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range nodes {
		n := &nodes[i]
		if time.Since(k.reported[n.Name]) < heartbeat {
			continue
		}
		k.reported[n.Name] = time.Now()
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			k.reportReady(n)
		})
	}
	wg.Wait()
}

func (k *cloudCluster) reportReady(n *corev1.Node) {
	now := metav1.Now()
	ready := object{
		"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now,
	}
	k.try(http.MethodPatch, "/api/v1/nodes/"+n.Name+"/status",
		object{"status": object{"conditions": []object{ready}}}, "application/strategic-merge-patch+json")
}

// nodes returns the nodes that have no kubelet.
func (k *cloudCluster) nodes() []corev1.Node {
	var list corev1.NodeList
	k.get("/api/v1/nodes", &list)
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, k.prefix) })
}

// get decodes an object if the request succeeds.
func (k *cloudCluster) get(path string, out any) {
	if code, text := k.try(http.MethodGet, path, nil, "application/json"); code == http.StatusOK {
		_ = json.Unmarshal(text, out)
	}
}

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
	out := ""
	eventually.Holds(t, fmt.Sprintf("%s %v shows %q", name, args, want), func() bool {
		_, out, _ = k.run(name, args...)
		return strings.Contains(out, want)
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
