package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/internal/wire"
)

// ShortNames gives every node the name that Slurm's users see: its annotation
// where it has a valid one, else its name up to the first dot. Names that
// would then be the same keep all their labels, joined by "-".
func ShortNames(nodes []*corev1.Node) map[string]string {
	out := make(map[string]string, len(nodes))
	count := map[string]int{}
	for _, n := range nodes {
		s := firstName(n)
		out[n.Name] = s
		count[s]++
	}
	for full, s := range out {
		if count[s] > 1 {
			out[full] = whole(full)
		}
	}
	return out
}

func firstName(n *corev1.Node) string {
	if a := n.Annotations[wire.AnnotationNodeName]; a != "" && len(validation.IsDNS1123Label(a)) == 0 {
		return a
	}
	short, _, _ := strings.Cut(n.Name, ".")
	return short
}

// whole is a node's full name as one DNS label.
func whole(name string) string {
	s := strings.ReplaceAll(name, ".", "-")
	if len(s) > validation.DNS1123LabelMaxLength {
		s = strings.Trim(s[:validation.DNS1123LabelMaxLength], "-")
	}
	return s
}
