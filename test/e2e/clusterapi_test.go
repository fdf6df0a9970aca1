package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/berth-hpc/berth/internal/eventually"
)

// The environment of TestClusterAPI, which make e2e-clusterapi sets: the program of Cluster
// API's core controllers, and the directory of their module.
const (
	envClusterAPI       = "BERTH_CLUSTERAPI"
	envClusterAPIModule = "BERTH_CLUSTERAPI_MODULE"
)

// machinePool is a pool of the Machines of a MachineDeployment.
const machinePool = `
- metadata: {name: machines}
  spec:
    nodes: m[1-3]
    resources: {cpu: "2", memory: 1Gi}
    features: [machines]
    bootTimeSeconds: 5
    resumeTimeoutSeconds: 120
    suspendTimeoutSeconds: 2
    suspendTimeSeconds: 2
    clusterAPI: {namespace: machines, machineDeployment: md}
`

// infrastructure defines the kinds of a provider: the test is that provider, by the contracts of
// Cluster API for InfraMachines and for control planes that are managed elsewhere.
const infrastructure = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// machineDeployment has no replicas yet.
const machineDeployment = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, namespace: machines, labels: {cluster.x-k8s.io/cluster-name: here}}
spec:
  clusterName: here
  replicas: 0
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: md, cluster.x-k8s.io/cluster-name: here}}
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}
  deletion: {order: Random}
  template:
    metadata: {labels: {cluster.x-k8s.io/deployment-name: md, cluster.x-k8s.io/cluster-name: here}}
    spec:
      clusterName: here
      bootstrap: {dataSecretName: none}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestMachineTemplate, name: small}
`

const (
	machinesPath       = "/apis/cluster.x-k8s.io/v1beta2/namespaces/machines/machines"
	deploymentsPath    = "/apis/cluster.x-k8s.io/v1beta2/namespaces/machines/machinedeployments"
	infrastructurePath = "/apis/infrastructure.cluster.x-k8s.io/v1/namespaces/machines"
	testMachinesPath   = infrastructurePath + "/testmachines"
)

// TestClusterAPI runs Cluster API's core controllers beside Berth, on the cluster that their
// Machines join. It needs the program (make e2e-clusterapi).
func TestClusterAPI(t *testing.T) {
	k := newMachineCluster(t)
	k.startClusterAPI()
	k.follow(func(pods []corev1.Pod) { k.endPods(pods); k.provideMachines() })
	k.createPools(machinePool)
	for _, sub := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a gang gets its machines and gives them back", k.gangOfMachines},
		{"the machine of an idle node goes, not another one", k.idleMachine},
		{"a machine that is taken away", k.machineTakenAway},
		{"replicas that somebody else sets", k.foreignReplicas},
	} {
		t.Run(sub.name, sub.run)
	}
}

// newMachineCluster starts a local cluster with Cluster API's resource definitions and a
// MachineDeployment.
func newMachineCluster(t *testing.T) *cloudCluster {
	t.Helper()
	k := newCloudCluster(t, envClusterAPI, "capi-", "make e2e-clusterapi builds Cluster API and runs this test")
	k.installClusterAPI(os.Getenv(envClusterAPIModule))
	k.writeCertificate(filepath.Join(k.state, "certs"))
	return k
}

// startClusterAPI starts Cluster API's core controllers. They are killed by the returned function,
// or with the test.
func (k *cloudCluster) startClusterAPI() (kill func()) {
	return k.startProgram(nil, "--leader-elect=false", "--webhook-port="+freePort(k.t),
		"--webhook-cert-dir="+filepath.Join(k.state, "certs"), "--health-addr=127.0.0.1:0",
		"--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics", "--kubeconfig="+filepath.Join(k.state, "kubeconfig"))
}

// installClusterAPI creates the resource definitions, and objects that describe this cluster.
func (k *cloudCluster) installClusterAPI(module string) {
	k.define(module, "core/config/crd/bases/*.yaml")
	for _, kind := range []string{"TestMachine", "TestMachineTemplate", "TestControlPlane"} {
		k.create(definitions, fmt.Appendf(nil, infrastructure, strings.ToLower(kind), kind))
	}
	k.request(k.t, http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": "machines"}}, nil)
	for _, name := range []string{"small", "other"} {
		k.create(infrastructurePath+"/testmachinetemplates", fmt.Appendf(nil,
			"{apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: TestMachineTemplate, metadata: {name: %s}, "+
				"spec: {template: {spec: {}}}}", name))
	}
	// Without a control plane Cluster API does not drain the nodes of Machines that it deletes.
	k.create(infrastructurePath+"/testcontrolplanes", []byte("{apiVersion: infrastructure.cluster.x-k8s.io/v1, "+
		"kind: TestControlPlane, metadata: {name: here}}"))
	k.request(k.t, http.MethodPatch, infrastructurePath+"/testcontrolplanes/here/status", object{"status": object{
		"externalManagedControlPlane": true, "initialization": object{"controlPlaneInitialized": true},
	}}, nil)
	kubeconfig, err := os.ReadFile(filepath.Join(k.state, "kubeconfig"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.request(k.t, http.MethodPost, "/api/v1/namespaces/machines/secrets", object{
		"metadata": object{"name": "here-kubeconfig", "labels": object{"cluster.x-k8s.io/cluster-name": "here"}},
		"type":     "cluster.x-k8s.io/secret",
		"data":     object{"value": base64.StdEncoding.EncodeToString(kubeconfig)},
	}, nil)
	address, err := url.Parse(k.admin.base)
	if err != nil {
		k.t.Fatal(err)
	}
	k.create("/apis/cluster.x-k8s.io/v1beta2/namespaces/machines/clusters", fmt.Appendf(nil,
		"{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: here}, "+
			"spec: {controlPlaneEndpoint: {host: %s, port: %s}, controlPlaneRef: {apiGroup: infrastructure.cluster.x-k8s.io, "+
			"kind: TestControlPlane, name: here}}}", address.Hostname(), address.Port()))
	k.create(deploymentsPath, []byte(machineDeployment))
}

// writeCertificate writes what the webhooks' server starts with. Nothing calls it.
func (k *cloudCluster) writeCertificate(dir string) {
	k.t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// provideMachines does what a provider of infrastructure does: each of its machines becomes a
// node, which goes with it.
func (k *cloudCluster) provideMachines() {
	var list metav1.PartialObjectMetadataList
	code, _ := k.try(http.MethodGet, testMachinesPath, nil, "application/json")
	if code != http.StatusOK {
		return
	}
	exist := map[string]bool{}
	for _, n := range k.nodes() { // before the machines: a node goes after its machine
		exist[n.Name] = true
	}
	k.get(testMachinesPath, &list)
	for _, m := range list.Items {
		name := k.prefix + m.Name
		if exist[name] || m.DeletionTimestamp != nil {
			delete(exist, name)
			continue
		}
		id := "test://" + m.Name
		resources := object{"cpu": "4", "memory": "2Gi", "pods": "10"}
		k.try(http.MethodPost, "/api/v1/nodes", object{
			"metadata": object{"name": name}, "spec": object{"providerID": id, "taints": []object{
				{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}, // as with kubeadm
			}},
			"status": object{"capacity": resources, "allocatable": resources},
		}, "application/json")
		k.try(http.MethodPatch, testMachinesPath+"/"+m.Name, object{"spec": object{"providerID": id}}, "application/merge-patch+json")
		k.try(http.MethodPatch, testMachinesPath+"/"+m.Name+"/status",
			object{"status": object{"initialization": object{"provisioned": true}}}, "application/merge-patch+json")
	}
	for name := range exist {
		k.try(http.MethodDelete, "/api/v1/nodes/"+name, nil, "application/json")
	}
}

// machines returns the names of the nodes whose Machines exist and do not go, and "?" for each
// Machine without one.
func (k *cloudCluster) machines() string {
	var names []string
	for _, m := range k.allMachines() {
		if name := m.Annotations["berth.hpc/node-name"]; m.DeletionTimestamp == nil && name != "" {
			names = append(names, name)
		} else if m.DeletionTimestamp == nil {
			names = append(names, "?")
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (k *cloudCluster) noMachinesAreLeft(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the machines go", func() bool { return len(k.allMachines()) == 0 && len(k.nodes()) == 0 })
	k.shows(t, "m1 idle~\nm2 idle~\nm3 idle~", "sinfo", "-h", "-N", "-n", "m[1-3]", "-o", "%N %t")
}

// gangOfMachines submits a job of two nodes, which gets exactly two Machines.
func (k *cloudCluster) gangOfMachines(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "-N2", "-C", "machines", "-o", "/dev/null", "--wrap", "sleep 1000")
	eventually.Holds(t, "Machines of exactly two nodes", func() bool { return k.machines() == "m1 m2" })
	eventually.Holds(t, "both pods are bound to their nodes", func() bool {
		on := k.bound(id)
		for _, name := range on {
			if !strings.HasPrefix(name, k.prefix) {
				t.Errorf("a pod is bound to %s", name)
			}
		}
		return len(on) == 2
	})
	if out := k.succeed(t, "squeue", "-h", "-j", id, "-o", "%N"); out != "m[1-2]" {
		t.Errorf("squeue shows the nodes %q", out)
	}
	if out := k.succeed(t, "sinfo", "-h", "-N", "-n", "m[1-3]", "-o", "%N %t %f"); out !=
		"m1 mix machines\nm2 mix machines\nm3 idle~ machines" {
		t.Errorf("sinfo shows %q", out)
	}
	k.succeed(t, "scancel", id)
	k.noMachinesAreLeft(t)
}

// idleMachine: of two nodes the one becomes idle whose Machine is older; the job on the other
// one runs on.
func (k *cloudCluster) idleMachine(t *testing.T) {
	submit := func(node string) string {
		id := k.succeed(t, "sbatch", "--parsable", "--no-requeue", "-C", "machines", "-w", node, "-o", "/dev/null",
			"--wrap", "sleep 1000")
		eventually.Holds(t, "the job has its node", func() bool { return len(k.bound(id)) == 1 })
		return id
	}
	first, second := submit("m1"), submit("m2")
	on := k.bound(second)
	k.succeed(t, "scancel", first)
	eventually.Holds(t, "one Machine goes", func() bool { return k.machines() == "m2" && len(k.nodes()) == 1 })
	if now := k.bound(second); !slices.Equal(now, on) || k.nodes()[0].Name != on[0] {
		t.Errorf("the job was on %v, and is on %v", on, now)
	}
	k.succeed(t, "scancel", second)
	k.noMachinesAreLeft(t)
}

// machineTakenAway: the Machine of a node with a job is deleted. The job gets another node, and
// no Machine is left behind.
func (k *cloudCluster) machineTakenAway(t *testing.T) {
	id := k.succeed(t, "sbatch", "--parsable", "--requeue", "-C", "machines", "-o", "/dev/null", "--wrap", "sleep 1000")
	var first []string
	eventually.Holds(t, "the job has a node", func() bool { first = k.bound(id); return len(first) == 1 })
	k.request(t, http.MethodDelete, machinesPath+"/"+k.machineOf("m1").Name, nil, nil)
	eventually.Holds(t, "the job has another node", func() bool {
		on := k.bound(id)
		return len(on) == 1 && on[0] != first[0]
	})
	k.succeed(t, "scancel", id)
	k.noMachinesAreLeft(t)
}

// foreignReplicas: a MachineDeployment that cluster-autoscaler scales is left alone, and users
// and operators see why no node comes.
func (k *cloudCluster) foreignReplicas(t *testing.T) {
	const limit = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
	k.request(t, http.MethodPatch, deploymentsPath+"/md", object{"metadata": object{"annotations": object{limit: "9"}}}, nil)
	id := k.succeed(t, "sbatch", "--parsable", "-C", "machines", "-o", "/dev/null", "--wrap", "sleep 1000")
	k.shows(t, "Reason=its request failed: cluster-autoscaler scales MachineDeployment md, too", "scontrol", "show", "node", "m1")
	if out := k.machines(); out != "" {
		t.Errorf("there are Machines for %s", out)
	}
	k.request(t, http.MethodPatch, deploymentsPath+"/md", object{"metadata": object{"annotations": object{limit: nil}}}, nil)
	eventually.Holds(t, "the node comes when nobody else scales", func() bool { return len(k.bound(id)) == 1 })
	k.succeed(t, "scancel", id)
	k.noMachinesAreLeft(t)
}
