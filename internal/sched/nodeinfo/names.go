package nodeinfo

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/internal/wire"
)

// ShortNames returns the name of each node as users of Slurm see it, by its
// Kubernetes name: the node's annotation if that is valid, else the Kubernetes
// name up to the first dot. Nodes whose short names would be equal get all
// labels of their names, joined by "-".
func ShortNames(nodes []*corev1.Node) map[string]string {
	out := make(map[string]string, len(nodes))
	count := map[string]int{}
	for _, n := range nodes {
		s := shortName(n)
		out[n.Name] = s
		count[s]++
	}
	for full, s := range out {
		if count[s] > 1 {
			out[full] = joinLabels(full)
		}
	}
	return out
}

func shortName(n *corev1.Node) string {
	if name := PoolName(n); name != n.Name {
		return name
	}
	short, _, _ := strings.Cut(n.Name, ".")
	return short
}

// PoolName returns the name by which a NodePool lists the node: the node's annotation if that
// is valid, else its Kubernetes name. Providers that name Node objects themselves have the
// annotation.
func PoolName(n *corev1.Node) string {
	if a := n.Annotations[wire.AnnotationNodeName]; a != "" && len(validation.IsDNS1123Label(a)) == 0 {
		return a
	}
	return n.Name
}

// joinLabels returns a full DNS name as one DNS label.
func joinLabels(name string) string {
	s := strings.ReplaceAll(name, ".", "-")
	if len(s) > validation.DNS1123LabelMaxLength {
		s = strings.Trim(s[:validation.DNS1123LabelMaxLength], "-")
	}
	return s
}
