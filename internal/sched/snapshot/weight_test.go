package snapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Light nodes are taken first, and everything that is shown stays in the order
// of the nodes' names.
func TestWeights(t *testing.T) {
	nodes := fourNodes()
	weigh := func(n *corev1.Node, weight string) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[wire.AnnotationWeight] = weight
	}
	weigh(nodes[0], "10")
	weigh(nodes[2], "5")
	b := aJob(1)
	b.Spec.Job.Shape.MinNodes = 2
	b.Spec.Job.Placement.Exclusive = "exclusive"
	v := view(Input{Nodes: nodes, Jobs: []*v1alpha1.BatchJob{b}})
	if got := strings.Join(v.Names(v.Plan().Decisions[0]), ","); got != "n2,n10" {
		t.Errorf("the job gets %s, want n2,n10", got)
	}
	var shown, members []string
	weights := 0
	for _, n := range v.NodeRows() {
		shown = append(shown, n.Name)
		weights = weights*100 + int(n.Weight)
	}
	if got := strings.Join(shown, ","); got != "n1,n2,n3,n10" || weights != 10010501 {
		t.Errorf("nodes are shown as %s, weights %d", got, weights)
	}
	for _, p := range v.PartitionRows() {
		if p.Name == "debug" {
			members = p.Nodes
		}
	}
	if got := strings.Join(members, ","); got != "n1,n2,n3,n10" {
		t.Errorf("the partition has %s", got)
	}
}
