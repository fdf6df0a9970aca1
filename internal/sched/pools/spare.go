package pools

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Annotations that Cluster API writes to the Node of a Machine.
const (
	annotationMachine          = "cluster.x-k8s.io/machine"
	annotationMachineNamespace = "cluster.x-k8s.io/cluster-namespace"
	annotationMachineOwner     = "cluster.x-k8s.io/owner-name" // its MachineSet
)

// taintMachine is the taint with which Machines register: Cluster API has not written its annotations.
const taintMachine = "node.cluster.x-k8s.io/uninitialized"

// isSpare reports whether the node is a Machine of a pool that has not got the name of a node, or may
// be one. Cluster API makes such Machines when it replaces others. Jobs must not run there: the node
// goes, or gets its name when it is needed.
func isSpare(all []*v1alpha1.NodePool, n *corev1.Node) bool {
	if n.Annotations[wire.AnnotationNodeName] != "" {
		return false
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintMachine }) {
		return slices.ContainsFunc(all, func(p *v1alpha1.NodePool) bool { return p.Spec.ClusterAPI != nil })
	}
	return n.Annotations[annotationMachine] != "" && slices.ContainsFunc(all, func(p *v1alpha1.NodePool) bool {
		s := p.Spec.ClusterAPI
		if s == nil || s.Namespace != n.Annotations[annotationMachineNamespace] {
			return false
		}
		// The name of a MachineSet is that of its MachineDeployment, "-", and letters and digits.
		suffix, ok := strings.CutPrefix(n.Annotations[annotationMachineOwner], s.MachineDeployment+"-")
		return ok && suffix != "" && !strings.Contains(suffix, "-")
	})
}
