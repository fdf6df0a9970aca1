package e2e

import (
	"bytes"
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/eventually"
)

// cloudCluster is a local cluster beside which something brings nodes that have no kubelet.
type cloudCluster struct {
	*database
	admin  *caller
	config *rest.Config
	ctx    context.Context // of requests beside the test's own

	program string // what brings nodes
	prefix  string // of the names of its nodes

	mu       sync.Mutex
	reported map[string]time.Time // when nodes were last reported ready
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

// newCloudCluster starts a local cluster for the program that the variable names, which brings
// nodes whose names have the prefix. Without the variable the test is skipped.
func newCloudCluster(t *testing.T, variable, prefix, why string) *cloudCluster {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip(why)
	}
	return newCloudOn(&database{start(t, "--slurm-conf", "testdata/pools/slurm.conf"), t, "", ""}, program, prefix)
}

// newCloudOn prepares a cluster that runs for the program.
func newCloudOn(d *database, program, prefix string) *cloudCluster {
	ctx, cancel := context.WithCancel(context.Background())
	d.t.Cleanup(cancel)
	k := &cloudCluster{database: d, ctx: ctx, program: program, prefix: prefix, reported: map[string]time.Time{}}
	k.admin, k.config = callerOf(d.t, filepath.Join(d.state, "kubeconfig"))
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

// programEnviron is the environment of what brings nodes, with env.
func (k *cloudCluster) programEnviron(env []string) []string {
	return append(append(os.Environ(), "KUBECONFIG="+filepath.Join(k.state, "kubeconfig")), env...)
}

// programLog is the log of what brings nodes.
func (k *cloudCluster) programLog() string { return filepath.Join(k.state, "program.log") }

// logged does something with a command whose output is added to the program's log.
func (k *cloudCluster) logged(cmd *exec.Cmd, do func(*exec.Cmd) error) error {
	log, err := os.OpenFile(k.programLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return do(cmd)
}

// startProgram starts what brings nodes. It is killed by the returned function, or with the
// test, which then shows the end of its log if it has failed.
func (k *cloudCluster) startProgram(env []string, args ...string) (kill func()) {
	t := k.t
	cmd := exec.Command(k.program, args...)
	cmd.Env = k.programEnviron(env)
	if err := k.logged(cmd, (*exec.Cmd).Start); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		kill()
		if data, err := os.ReadFile(k.programLog()); err == nil && t.Failed() {
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

// follow plays the kubelets of nodes that have none, until the test ends: it reports the nodes
// ready, renews their leases, and calls pods with the pods that are bound to them. It watches both,
// as kubelets do: lists of a thousand nodes would cost the API server more than their leases.
func (k *cloudCluster) follow(pods func([]corev1.Pod)) {
	clients, err := kubernetes.NewForConfig(k.config)
	if err != nil {
		k.t.Fatal(err)
	}
	watched := informers.NewSharedInformerFactory(clients, 0)
	allNodes, allPods := watched.Core().V1().Nodes().Lister(), watched.Core().V1().Pods().Lister()
	watched.Start(k.ctx.Done())
	watched.WaitForCacheSync(k.ctx.Done())
	k.repeat(func() {
		list, _ := allNodes.List(labels.Everything()) // from memory, which has no error
		var nodes []corev1.Node
		for _, n := range list {
			if strings.HasPrefix(n.Name, k.prefix) {
				nodes = append(nodes, *n)
			}
		}
		k.reportAll(nodes)
	})
	k.repeat(func() {
		list, _ := allPods.List(labels.Everything())
		var bound []corev1.Pod
		for _, p := range list {
			if strings.HasPrefix(p.Spec.NodeName, k.prefix) {
				bound = append(bound, *p)
			}
		}
		pods(bound)
	})
}

// repeat calls do again and again until the test ends, with pauses as long as a call took, and of
// half a second at least.
func (k *cloudCluster) repeat(do func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			began := time.Now()
			do()
			select {
			case <-stop:
				return
			case <-time.After(max(500*time.Millisecond, time.Since(began))):
			}
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

// heartbeat is how often the lease of a node is renewed.
const heartbeat = 10 * time.Second

// reportAll reports the nodes ready that are new or that the control plane has not heard of in
// time, as kubelets do, and renews the leases that are due.
func (k *cloudCluster) reportAll(nodes []corev1.Node) {
	atOnce(len(nodes), func(i int) {
		n := &nodes[i]
		k.mu.Lock()
		last := k.reported[n.Name]
		k.mu.Unlock()
		if !isReady(n) && !k.reportReady(n) || time.Since(last) < heartbeat || !k.renewLease(n) {
			return
		}
		k.mu.Lock()
		k.reported[n.Name] = time.Now()
		k.mu.Unlock()
	})
}

// atOnce calls do with each number from 0 to n-1, up to 16 calls at a time, and waits for all.
func atOnce(n int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// reportReady reports that the node can run pods, and whether that succeeded.
func (k *cloudCluster) reportReady(n *corev1.Node) bool {
	now := metav1.Now()
	ready := object{
		"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now,
	}
	code, _ := k.try(http.MethodPatch, "/api/v1/nodes/"+n.Name+"/status",
		object{"status": object{"conditions": []object{ready}}}, "application/strategic-merge-patch+json")
	return code == http.StatusOK
}

// renewLease renews the lease by which the control plane knows that the node's kubelet lives,
// and reports whether that succeeded.
func (k *cloudCluster) renewLease(n *corev1.Node) bool {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	lease := object{
		"metadata": object{"name": n.Name, "ownerReferences": []object{
			{"apiVersion": "v1", "kind": "Node", "name": n.Name, "uid": n.UID},
		}},
		"spec": object{"holderIdentity": n.Name, "leaseDurationSeconds": 40, "renewTime": metav1.NowMicro()},
	}
	code, _ := k.try(http.MethodPatch, leases+"/"+n.Name, lease, "application/merge-patch+json")
	if code == http.StatusNotFound {
		code, _ = k.try(http.MethodPost, leases, lease, "application/json")
	}
	return code == http.StatusOK || code == http.StatusCreated
}

// nodes returns the nodes that have no kubelet.
func (k *cloudCluster) nodes() []corev1.Node {
	var list corev1.NodeList
	k.get("/api/v1/nodes", &list)
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, k.prefix) })
}

// get decodes an object, which it requests until that succeeds: what could not be read must not
// look as if there were nothing.
func (k *cloudCluster) get(path string, out any) {
	for k.ctx.Err() == nil {
		code, text := k.try(http.MethodGet, path, nil, "application/json")
		if code == http.StatusOK && json.Unmarshal(text, out) == nil || code == http.StatusNotFound {
			return
		}
		select {
		case <-k.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}
