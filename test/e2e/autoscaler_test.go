package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/eventually"
)

// The environment of TestClusterAutoscaler: the program of cluster-autoscaler with its KWOK
// provider (go build -tags kwok in its repository), and the directory of the source.
const (
	envAutoscaler       = "BERTH_AUTOSCALER"
	envAutoscalerSource = "BERTH_AUTOSCALER_SOURCE"
)

// autoscaledPool is a pool of three nodes; the node group brings two at most.
const autoscaledPool = `
- metadata: {name: scaled}
  spec:
    nodes: a[1-3]
    resources: {cpu: "2", memory: 1Gi}
    features: [scaled]
    labels: {group: fake-ng}
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 60
    suspendTimeoutSeconds: 20
    suspendTimeSeconds: 2
    provisioningRequest: {namespace: berth-system, nodeSelector: {group: fake-ng}}
`

// nodeGroups configures the KWOK provider.
const nodeGroups = `
apiVersion: v1alpha1
readNodesFrom: configmap
nodegroups: {fromNodeLabelKey: group}
nodes: {skipTaint: true}
configmap: {name: node-templates}
`

// nodeTemplates is the only node group.
const nodeTemplates = `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: template
    labels: {group: fake-ng, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
    annotations:
      cluster-autoscaler.kwok.nodegroup/min-count: "0"
      cluster-autoscaler.kwok.nodegroup/max-count: "2"
      cluster-autoscaler.kwok.nodegroup/desired-count: "0"
  spec: {}
  status:
    capacity: {cpu: "3", memory: 2Gi, pods: "10"}
    allocatable: {cpu: "3", memory: 2Gi, pods: "10"}
`

const (
	systemConfigMaps = "/api/v1/namespaces/berth-system/configmaps"
	requestsPath     = "/apis/autoscaling.x-k8s.io/v1/namespaces/berth-system/provisioningrequests"
)

// TestClusterAutoscaler runs cluster-autoscaler beside Berth. It needs the program.
func TestClusterAutoscaler(t *testing.T) {
	k := newCloudCluster(t, envAutoscaler, "fake-ng-", "BERTH_AUTOSCALER does not name cluster-autoscaler")
	k.define(os.Getenv(envAutoscalerSource), "apis/config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml")
	k.request(t, http.MethodPost, systemConfigMaps,
		object{"metadata": object{"name": "kwok-provider-config"}, "data": object{"config": nodeGroups}}, nil)
	k.request(t, http.MethodPost, systemConfigMaps,
		object{"metadata": object{"name": "node-templates"}, "data": object{"templates": nodeTemplates}}, nil)
	k.startProgram([]string{"POD_NAMESPACE=berth-system", "KWOK_PROVIDER_MODE=local"},
		"--cloud-provider=kwok", "--enable-provisioning-requests", "--kubeconfig="+filepath.Join(k.state, "kubeconfig"),
		"--namespace=berth-system", "--leader-elect=false", "--address=127.0.0.1:0", "--scan-interval=1s",
		"--scale-down-delay-after-add=1s", "--scale-down-unneeded-time=3s", "--scale-down-unready-time=3s",
		"--scale-down-delay-after-delete=0s", "--kube-api-content-type=application/json",
		"--provisioning-request-initial-backoff-time=1s", "--provisioning-request-max-backoff-time=2s")
	k.follow(k.endPods)
	k.createPools(autoscaledPool)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a gang gets its nodes and gives them back", k.gangOfRequest},
		{"an idle node does not satisfy a request for another", k.secondRequest},
		{"no capacity", k.noCapacityForRequest},
	} {
		t.Run(sub.name, sub.run)
	}
}

// provisioningRequests returns for which nodes there are requests.
func (k *cloudCluster) provisioningRequests() string {
	var list metav1.PartialObjectMetadataList
	k.get(requestsPath, &list)
	var out []string
	for _, q := range list.Items {
		out = append(out, q.Annotations["berth.hpc/nodes"])
	}
	return strings.Join(out, " ")
}

func (k *cloudCluster) noScaledNodesAreLeft(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "cluster-autoscaler removes the nodes", func() bool { return len(k.nodes()) == 0 })
	k.shows(t, "a1 idle~\na2 idle~\na3 idle~", "sinfo", "-h", "-N", "-n", "a[1-3]", "-o", "%N %t")
	var templates corev1.PodTemplateList
	eventually.Holds(t, "no request is left", func() bool {
		k.get("/api/v1/namespaces/berth-system/podtemplates", &templates)
		return k.provisioningRequests() == "" && len(templates.Items) == 0
	})
}

// gangOfRequest submits a job of two nodes, which gets them by one request.
func (k *cloudCluster) gangOfRequest(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-N2", "-C", "scaled", "-o", "/dev/null", "--wrap", "sleep 1000")
	eventually.Holds(t, "one request for both nodes", func() bool { return k.provisioningRequests() == "a[1-2]" })
	eventually.Holds(t, "both pods are bound", func() bool { return len(k.bound(id)) == 2 })
	for _, name := range k.bound(id) {
		if !strings.HasPrefix(name, k.prefix) {
			t.Errorf("a pod is bound to %s", name)
		}
	}
	if out := k.succeed(t, "sinfo", "-h", "-N", "-n", "a[1-3]", "-o", "%N %t"); out != "a1 mix\na2 mix\na3 idle~" {
		t.Errorf("sinfo shows %q", out)
	}
	eventually.Holds(t, "the request goes when its nodes have come", func() bool { return k.provisioningRequests() == "" })
	for _, n := range k.nodes() {
		if n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] != "true" {
			t.Errorf("cluster-autoscaler may remove %s", n.Name)
		}
	}
	k.succeed(t, "scancel", id)
	k.noScaledNodesAreLeft(t)
}

// secondRequest: a job of two nodes of which one runs and is idle. The request is for one more.
func (k *cloudCluster) secondRequest(t *testing.T) {
	k.request(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/nodepools/scaled",
		object{"spec": object{"suspendTimeSeconds": 600}}, nil)
	id := k.succeed(t, "sbatch", "--parsable", "-C", "scaled", "-o", "/dev/null", "--wrap", "sleep 1000")
	eventually.Holds(t, "it has a node", func() bool { return len(k.bound(id)) == 1 })
	k.succeed(t, "scancel", id)
	eventually.Holds(t, "its pod is gone", func() bool { return len(k.bound(id)) == 0 })
	id = k.succeed(t, "sbatch", "--parsable", "-N2", "-C", "scaled", "-o", "/dev/null", "--wrap", "sleep 1000")
	eventually.Holds(t, "both pods are bound", func() bool { return len(k.bound(id)) == 2 })
	if n := len(k.nodes()); n != 2 {
		t.Errorf("there are %d nodes", n)
	}
	k.succeed(t, "scancel", id)
	k.request(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/nodepools/scaled",
		object{"spec": object{"suspendTimeSeconds": 2}}, nil)
	k.noScaledNodesAreLeft(t)
}

// noCapacityForRequest: a job of more nodes than the node group brings gets none of them, and
// what cluster-autoscaler says is shown.
func (k *cloudCluster) noCapacityForRequest(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-N3", "-C", "scaled", "-o", "/dev/null", "--wrap", "sleep 1000")
	k.shows(t, "not provisioned: CapacityIsNotFound", "scontrol", "show", "node", "a3")
	if n := len(k.nodes()); n != 0 {
		t.Errorf("%d nodes have come", n)
	}
	k.succeed(t, "scancel", id)
	k.noScaledNodesAreLeft(t)
}
