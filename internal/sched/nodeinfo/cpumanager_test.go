package nodeinfo

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

func TestCPUManager(t *testing.T) {
	for _, c := range []struct {
		manager, topology, numa string
		cores, policy           string
		lists                   []string
		cpus                    int
	}{
		{"", "single-numa-node", "", "", "", nil, 0},
		{"none", "restricted", "", "pinned cores (no CPU manager; other pods may use them)", "", nil, 0},
		{"static", "", "", "exclusive cores (static CPU manager)", "", nil, 8},
		{"static,full-pcpus-only", "none", "", "exclusive cores (static CPU manager)", "none", nil, 8},
		{"static", "best-effort", "", "exclusive cores (static CPU manager), topology manager best-effort", "best-effort", nil, 8},
		{"static", "single-numa-node", "", "exclusive cores (static CPU manager), topology manager single-numa-node",
			"single-numa-node", nil, 8},
		{"static", "restricted", "1-3; 4-7", "exclusive cores (static CPU manager), topology manager restricted",
			"restricted", []string{"1-3", "4-7"}, 8},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			wire.AnnotationCPUManager: c.manager, wire.AnnotationTopologyManager: c.topology, wire.AnnotationNUMACPUs: c.numa,
		}}}
		n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		if got := CoresOfJobs(n); got != c.cores {
			t.Errorf("%+v: %q", c, got)
		}
		if got := TopologyManagerOf(n); got.Policy != c.policy || !slices.Equal(got.NUMA, c.lists) ||
			got.CPUs != c.cpus {
			t.Errorf("%+v: %+v", c, got)
		}
		if got := TopologyManagerOf(n).RefusesPods(); got != (c.policy == "restricted" || c.policy == "single-numa-node") {
			t.Errorf("%+v: refuses pods: %t", c, got)
		}
	}
}
