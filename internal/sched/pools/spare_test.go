package pools

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// A Machine of the pool's MachineDeployment runs no jobs until it has the name of a node of the pool.
// Machines that belong to others do.
func TestMachinesWithoutNameAreNoNodes(t *testing.T) {
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: v1alpha1.NodePoolSpec{
		Nodes:      "c1",
		ClusterAPI: &v1alpha1.NodeClusterAPI{Namespace: "machines", MachineDeployment: "hpc"},
	}}
	for name, test := range map[string]struct {
		namespace, owner, node string
		want                   bool
		taint                  string
	}{
		"not seen by Cluster API": {want: false, taint: taintMachine},
		"without name":            {"machines", "hpc-x7k2p", "", false, ""},
		"with name":               {"machines", "hpc-x7k2p", "c1", true, ""},
		"of another deployment":   {"machines", "hpc-gpu-x7k2p", "", true, ""},
		"of another namespace":    {"other", "hpc-x7k2p", "", true, ""},
		"of no deployment":        {"machines", "control-plane", "", true, ""},
		"of a set of that name":   {"machines", "hpc", "", true, ""},
		"of a set of a namesake":  {"machines", "hpc2-x7k2p", "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vm-1", Annotations: map[string]string{
				annotationMachine: "hpc-x7k2p-abcde", annotationMachineNamespace: test.namespace,
				annotationMachineOwner: test.owner, wire.AnnotationNodeName: test.node,
			}}}
			n.Spec.Taints = []corev1.Taint{{Key: test.taint}}
			merged, _ := Merge([]*v1alpha1.NodePool{pool}, []*corev1.Node{n}, time.Unix(0, 0))
			got := false
			for _, m := range merged {
				got = got || m.Name == "vm-1"
			}
			if got != test.want {
				t.Errorf("it is a node: %t", got)
			}
		})
	}
}
