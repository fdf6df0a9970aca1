package power

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-hpc/berth/internal/wire"
)

// fleet has the Machines of a MachineDeployment, and which of them are nodes.
type fleet struct {
	all     []*unstructured.Unstructured
	byName  map[string]*unstructured.Unstructured // that are nodes, by the names of these
	unnamed []*unstructured.Unstructured          // that are no nodes yet, the oldest first
}

// newFleet sorts the Machines of a MachineDeployment, which are given oldest first. A Machine that is
// being deleted is not counted as a node. One that is marked for deletion but has no node's name yet
// can still get one.
func newFleet(machines []*unstructured.Unstructured) *fleet {
	f := &fleet{all: machines, byName: map[string]*unstructured.Unstructured{}}
	for _, m := range machines {
		_, marked := m.GetAnnotations()[annotationDeleteMachine]
		name := m.GetAnnotations()[wire.AnnotationNodeName]
		switch {
		case m.GetDeletionTimestamp() != nil, marked && name != "":
		case name != "" && f.byName[name] == nil:
			f.byName[name] = m
		default:
			f.unnamed = append(f.unnamed, m)
		}
	}
	return f
}

// isDeleted reports whether the Machine of the node is being deleted.
func (f *fleet) isDeleted(name string) bool {
	return f.byName[name] == nil && slices.ContainsFunc(f.all, func(m *unstructured.Unstructured) bool {
		return m.GetDeletionTimestamp() != nil && m.GetAnnotations()[wire.AnnotationNodeName] == name
	})
}

// replicasToMake returns the number of replicas for which Cluster API creates n more Machines. It
// creates them in the MachineSet of the current template, up to that number of replicas, and all
// MachineSets together may have at most surge Machines more than replicas.
func (f *fleet) replicasToMake(n, surge int) int {
	current := 0
	for _, m := range f.all {
		if !isOutdated(m) {
			current++
		}
	}
	return n + max(current, len(f.all)-surge)
}

// isOutdated reports whether a Machine has another template than new Machines get.
func isOutdated(m *unstructured.Unstructured) bool {
	return text(conditionOf(m, "UpToDate"), "status") == string(metav1.ConditionFalse)
}

// maxSurge returns how many Machines more than replicas a MachineDeployment surely may have.
func maxSurge(d *unstructured.Unstructured) int {
	for _, path := range [][]string{{"spec", "rollout", "strategy"}, {"spec", "strategy"}} { // v1beta2, v1beta1
		kind, _, _ := unstructured.NestedString(d.Object, append(path, "type")...)
		surge, found, _ := unstructured.NestedFieldNoCopy(d.Object, append(path, "rollingUpdate", "maxSurge")...)
		n, isNumber := surge.(int64)
		switch {
		case kind == "OnDelete", found && !isNumber: // a percentage, of a number that changes
			return 0
		case found:
			return int(n)
		}
	}
	return 1 // the default
}
