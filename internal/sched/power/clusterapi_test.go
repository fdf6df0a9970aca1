package power

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

var (
	machineKind    = schema.GroupVersionKind{Group: clusterAPIGroup, Version: "v1beta2", Kind: "Machine"}
	deploymentKind = schema.GroupVersionKind{Group: clusterAPIGroup, Version: "v1beta2", Kind: "MachineDeployment"}
)

// machineBench is a bench whose pool has the Machines of a MachineDeployment with no replicas.
func machineBench(t *testing.T) *bench {
	t.Helper()
	b := poolBench(t, interceptor.Funcs{}, func(s *v1alpha1.NodePoolSpec) {
		s.Features = []string{"rented"}
		s.ClusterAPI = &v1alpha1.NodeClusterAPI{Namespace: "machines", MachineDeployment: "md"}
	}, machineKind, deploymentKind)
	d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(0)}}}
	d.SetGroupVersionKind(deploymentKind)
	d.SetNamespace("machines")
	d.SetName("md")
	b.create(d)
	return b
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	if err := b.c.Client.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) deployment() *unstructured.Unstructured {
	b.t.Helper()
	p, _ := b.c.NodePools.Get("cloud")
	d, err := clusterAPI{b.c}.deployment(b.t.Context(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// update writes a change of an object, as others do.
func (b *bench) update(o *unstructured.Unstructured, change func()) {
	b.t.Helper()
	change()
	if err := b.c.Client.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) replicas() int64 {
	n, _, _ := unstructured.NestedInt64(b.deployment().Object, "spec", "replicas")
	return n
}

// machines returns the Machines, each with the name of its node, and "-" if it has to go.
func (b *bench) machines() string {
	b.t.Helper()
	var out []string
	for _, m := range b.allMachines() {
		text := m.GetName() + "=" + m.GetAnnotations()[wire.AnnotationNodeName]
		if m.GetAnnotations()[annotationDeleteMachine] != "" {
			text += "-"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (b *bench) allMachines() []*unstructured.Unstructured {
	b.t.Helper()
	p, _ := b.c.NodePools.Get("cloud")
	all, err := clusterAPI{b.c}.machines(b.t.Context(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// reconcile does what Cluster API does: it makes as many Machines as there are replicas, of which
// those that are being deleted are some, and removes those first that are marked.
func (b *bench) reconcile() {
	b.t.Helper()
	all := b.allMachines()
	slices.SortStableFunc(all, func(x, y *unstructured.Unstructured) int {
		return cmp.Compare(deletionOrder(x), deletionOrder(y))
	})
	for i := len(all); i > int(b.replicas()); i-- {
		if err := b.c.Client.Delete(b.t.Context(), all[0]); err != nil {
			b.t.Fatal(err)
		}
		all = all[1:]
	}
	for i := len(all); i < int(b.replicas()); i++ {
		b.makeMachine()
	}
}

// deletionOrder is smaller for Machines that Cluster API removes first.
func deletionOrder(m *unstructured.Unstructured) int {
	switch {
	case m.GetDeletionTimestamp() != nil:
		return 0
	case m.GetAnnotations()[annotationDeleteMachine] != "":
		return 1
	}
	return 2
}

func (b *bench) makeMachine() {
	b.t.Helper()
	m := &unstructured.Unstructured{Object: map[string]any{}}
	m.SetGroupVersionKind(machineKind)
	m.SetNamespace("machines")
	b.made++
	m.SetName(fmt.Sprintf("m%d", b.made))
	m.SetCreationTimestamp(metav1.NewTime(b.clock))
	m.SetLabels(map[string]string{labelDeployment: "md"})
	b.create(m)
}

// machine returns the Machine of that name.
func (b *bench) machine(name string) *unstructured.Unstructured {
	b.t.Helper()
	all := b.allMachines()
	i := slices.IndexFunc(all, func(m *unstructured.Unstructured) bool { return m.GetName() == name })
	if i < 0 {
		b.t.Fatalf("there is no Machine %s", name)
	}
	return all[i]
}

// boot makes the node of a Machine come.
func (b *bench) boot(machine string) {
	b.t.Helper()
	b.come("node-"+machine, nil)
	m := b.machine(machine)
	b.update(m, func() { _ = unstructured.SetNestedField(m.Object, "test://node-"+machine, "spec", "providerID") })
}

// drain deletes a Machine, which stays until its node is drained.
func (b *bench) drain(machine string) {
	b.t.Helper()
	m := b.machine(machine)
	b.update(m, func() { m.SetFinalizers([]string{"test/drain"}) })
	if err := b.c.Client.Delete(b.t.Context(), m); err != nil {
		b.t.Fatal(err)
	}
}

// A MachineDeployment has a replica for each node that is needed, and the Machine of a node
// goes with it, also if others are older.
func TestMachinesFollowTheNodes(t *testing.T) {
	b := machineBench(t)
	b.place(1, "c1", "c3")
	b.expect("requested", b.step(), "c1 PoweringUp, c3 PoweringUp")
	b.expect("replicas", fmt.Sprint(b.replicas()), "2")
	b.reconcile()
	b.step()
	b.expect("named", b.machines(), "m1=c1 m2=c3")
	b.come("node-a", nil)
	b.update(b.allMachines()[0], func() {})
	for i, node := range []string{"node-a", "node-b"} {
		m := b.allMachines()[i]
		b.update(m, func() { _ = unstructured.SetNestedField(m.Object, "test://"+node, "spec", "providerID") })
	}
	n := b.come("node-b", nil)
	b.step()
	b.expect("come", b.step(), "c1 Running, c3 Running")
	b.expect("the nodes' names", b.poolName("node-a")+" "+b.poolName("node-b"), "c1 c3")
	if err := b.c.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil || n.Labels["feature.berth.hpc/rented"] != "true" {
		t.Errorf("the labels are %v, %v", n.Labels, err)
	}
	b.endJob(1)
	b.place(2, "c3")
	b.step()
	b.clock = b.clock.Add(100 * time.Second)
	b.expect("one is idle", b.step(), "c1 PoweringDown, c3 Running")
	b.expect("its Machine is to go", b.machines(), "m1=c1- m2=c3")
	b.expect("replicas", fmt.Sprint(b.replicas()), "1")
	b.reconcile()
	b.expect("the other one stays", b.machines(), "m2=c3")
}

// A request that is not recorded is repeated: it makes no further Machines.
func TestRepeatedRequestsForMachines(t *testing.T) {
	b := machineBench(t)
	b.place(1, "c1", "c2")
	b.step()
	p, _ := b.c.NodePools.Get("cloud")
	for range 2 {
		if err := (clusterAPI{b.c}).Resume(t.Context(), p, []string{"c1", "c2"}); err != nil {
			t.Error(err)
		}
		b.reconcile()
	}
	b.expect("replicas", fmt.Sprint(b.replicas()), "2")
	if n := len(b.allMachines()); n != 2 {
		t.Errorf("%d Machines", n)
	}
}

// Nodes that are not wanted any more before they have come: their Machines go.
func TestMachinesThatAreNotWantedAnyMore(t *testing.T) {
	b := machineBench(t)
	b.place(1, "c1", "c2")
	b.step()
	b.reconcile()
	b.step()
	b.endJob(1)
	b.clock = b.clock.Add(time.Minute)
	b.expect("too late", b.step(), "c1 PoweringDown, c2 PoweringDown")
	b.expect("to go", b.machines(), "m1=c1- m2=c2-")
	b.expect("replicas", fmt.Sprint(b.replicas()), "0")
}

// A MachineDeployment that is not the pool's is not changed.
func TestForeignMachineDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   string
	}{
		"has machines": {func(d *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(d.Object, int64(3), "spec", "replicas")
		},
			"its request failed: MachineDeployment md has machines that Berth did not request: set its replicas to 0, " +
				"or give it the label berth.hpc/node-pool=cloud if they may be removed"},
		"of another pool": {func(d *unstructured.Unstructured) { d.SetLabels(map[string]string{wire.LabelNodePool: "x"}) },
			"its request failed: MachineDeployment md belongs to node pool x (label berth.hpc/node-pool)"},
		"autoscaled": {func(d *unstructured.Unstructured) { d.SetAnnotations(map[string]string{annotationMaxSize: "5"}) },
			"its request failed: cluster-autoscaler scales MachineDeployment md, too (annotation " + annotationMaxSize + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			b := machineBench(t)
			d := b.deployment()
			b.update(d, func() { test.change(d) })
			before := b.replicas()
			b.place(1, "c1")
			b.expect("not requested", b.step(), "c1 PoweringUp?")
			b.expect("why", b.node("c1").Progress, test.want)
			if b.replicas() != before {
				t.Errorf("the replicas are %d", b.replicas())
			}
		})
	}
}

// What a Machine says is shown, and one that has failed is not waited for.
func TestMachineThatFails(t *testing.T) {
	b := machineBench(t)
	b.place(1, "c1")
	b.step()
	b.step()
	b.expect("no Machine yet", b.node("c1").Progress, "MachineDeployment md has no Machine for it")
	b.reconcile()
	b.step()
	m := b.allMachines()[0]
	b.update(m, func() {
		_ = unstructured.SetNestedSlice(m.Object, []any{map[string]any{
			"type": "InfrastructureReady", "status": "False", "reason": "NoQuota", "message": "sold out",
		}}, "status", "conditions")
	})
	b.step()
	b.expect("why", b.node("c1").Progress, "Machine m1: not infrastructureready: NoQuota: sold out")
	b.update(m, func() { _ = unstructured.SetNestedField(m.Object, "Failed", "status", "phase") })
	b.step()
	b.expect("failed", b.step(), "c1 PoweringDown")
	b.expect("its Machine goes", b.machines(), "m1=c1-")
}

func TestClusterWithoutClusterAPI(t *testing.T) {
	b := poolBench(t, interceptor.Funcs{}, func(s *v1alpha1.NodePoolSpec) {
		s.ClusterAPI = &v1alpha1.NodeClusterAPI{Namespace: "machines", MachineDeployment: "md"}
	})
	b.place(1, "c1")
	b.step()
	b.expect("why", b.node("c1").Progress, "its request failed: "+errNoClusterAPI.Error())
}
