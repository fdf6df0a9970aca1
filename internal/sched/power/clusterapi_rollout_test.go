package power

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// runningMachine returns a bench on which job 1 runs on c1, whose Machine is m1.
func runningMachine(t *testing.T) *bench {
	t.Helper()
	b := machineBench(t)
	b.place(1, "c1")
	b.step()
	b.reconcile()
	b.step()
	b.boot("m1")
	b.step()
	b.expect("it runs", b.step(), "c1 Running")
	return b
}

func (b *bench) expectMachines(what, machines string, replicas int) {
	b.t.Helper()
	b.expect(what, fmt.Sprint(b.machines(), ", replicas ", b.replicas()), fmt.Sprint(machines, ", replicas ", replicas))
}

// Cluster API drains a node: it gets no other job and needs no replica. Another node gets a Machine
// although the one that is drained counts as a replica.
func TestMachineThatIsDrained(t *testing.T) {
	b := runningMachine(t)
	b.drain("m1")
	b.expect("its job runs on", b.step(), "c1 Running")
	if !b.node("c1").PowerDown {
		t.Error("it could get another job")
	}
	b.expectMachines("nothing is kept for it", "m1=c1", 0)
	b.place(2, "c2")
	b.expect("another node", b.step(), "c1 Running, c2 PoweringUp")
	b.expectMachines("requested", "m1=c1", 2)
	b.reconcile()
	b.step()
	b.expectMachines("it has come", "m1=c1 m2=c2", 1)
	b.reconcile()
	b.expectMachines("nothing changes", "m1=c1 m2=c2", 1)
	b.boot("m2")
	b.step()
	b.endJob(1)
	b.expect("the first job ends", b.step(), "c1 PoweringDown, c2 Running")
	b.expectMachines("the other one stays", "m1=c1 m2=c2", 1)
}

// How many replicas there must be so that one more Machine is made depends on the MachineSets of those
// that exist.
func TestReplicasToMakeOneMachine(t *testing.T) {
	current, outdated := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{"type": "UpToDate", "status": "False"}}},
	}}
	strategy := func(version string, fields map[string]any) map[string]any {
		if version == "v1beta2" {
			return map[string]any{"rollout": map[string]any{"strategy": fields}}
		}
		return map[string]any{"strategy": fields}
	}
	surge := func(n any) map[string]any { return map[string]any{"rollingUpdate": map[string]any{"maxSurge": n}} }
	for name, test := range map[string]struct {
		spec     map[string]any
		machines []*unstructured.Unstructured
		want     int
	}{
		"none exists":           {nil, nil, 1},
		"of the same set":       {nil, []*unstructured.Unstructured{current, current}, 3},
		"of an old set":         {nil, []*unstructured.Unstructured{outdated}, 1},
		"two of an old set":     {nil, []*unstructured.Unstructured{outdated, outdated}, 2},
		"of both":               {nil, []*unstructured.Unstructured{outdated, current}, 2},
		"no surge":              {strategy("v1beta2", surge(int64(0))), []*unstructured.Unstructured{outdated}, 2},
		"a surge of two":        {strategy("v1beta1", surge(int64(2))), []*unstructured.Unstructured{outdated, outdated}, 1},
		"a percentage":          {strategy("v1beta2", surge("50%")), []*unstructured.Unstructured{outdated}, 2},
		"replaced when deleted": {strategy("v1beta2", map[string]any{"type": "OnDelete"}), []*unstructured.Unstructured{outdated}, 2},
	} {
		d := &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}
		if n := newFleet(test.machines).replicasToMake(1, maxSurge(d)); n != test.want {
			t.Errorf("%s: %d replicas, want %d", name, n, test.want)
		}
	}
}

// A Machine fails, and its job gets another node at the same time: the number of replicas that are
// needed does not change, and yet the failed Machine is replaced.
func TestFailedMachineIsReplaced(t *testing.T) {
	b := machineBench(t)
	b.place(1, "c1")
	b.step()
	b.reconcile()
	b.step()
	b.endJob(1)
	b.place(2, "c2")
	b.clock = b.clock.Add(time.Minute)
	b.expect("it is too late", b.step(), "c1 PoweringDown, c2 PoweringUp")
	b.expectMachines("it has to go", "m1=c1-", 2)
	b.reconcile()
	b.step()
	b.expectMachines("the other one has come", "m1=c1- m2=c2", 1)
	b.reconcile()
	b.expectMachines("it goes", "m2=c2", 1)
}

// A Machine that Cluster API adds during a rolling update becomes a node when one is needed.
func TestMachineThatNobodyRequested(t *testing.T) {
	b := runningMachine(t)
	b.makeMachine()
	b.boot("m2")
	b.expect("no other node runs", b.step(), "c1 Running")
	b.expectMachines("it goes first", "m1=c1 m2=-", 1)
	b.expect("it has no name", b.poolName("node-m2"), "")
	b.place(2, "c3")
	b.step()
	b.expect("another node is needed", b.step(), "c1 Running, c3 Running")
	b.expectMachines("it is this one", "m1=c1 m2=c3", 2)
	b.expect("it has its name", b.poolName("node-m2"), "c3")
}

// The MachineDeployment belongs to the pool no longer, or cluster-autoscaler scales it, too: what its
// Machines do changes nothing.
func TestProgressChangesNoForeignDeployment(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"of nobody":  func(d *unstructured.Unstructured) { d.SetLabels(nil) },
		"autoscaled": func(d *unstructured.Unstructured) { d.SetAnnotations(map[string]string{annotationMaxSize: "5"}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := runningMachine(t)
			d := b.deployment()
			b.update(d, func() {
				change(d)
				_ = unstructured.SetNestedField(d.Object, int64(5), "spec", "replicas")
			})
			b.step()
			b.expectMachines("nothing is written", "m1=c1", 5)
		})
	}
}
