package nodeinfo

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

func TestCPUManager(t *testing.T) {
	for _, c := range []struct {
		manager, topology, numa string
		cores, policy           string
		lists                   []string
	}{
		{"", "single-numa-node", "", "", "", nil},
		{"none", "restricted", "", "pinned cores (no CPU manager; other pods may use them)", "", nil},
		{"static", "", "", "exclusive cores (static CPU manager)", "", nil},
		{"static,full-pcpus-only", "none", "", "exclusive cores (static CPU manager)", "none", nil},
		{"static", "restricted", "1-3; 4-7", "exclusive cores (static CPU manager), topology manager restricted",
			"restricted", []string{"1-3", "4-7"}},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			wire.AnnotationCPUManager: c.manager, wire.AnnotationTopologyManager: c.topology, wire.AnnotationNUMACPUs: c.numa,
		}}}
		if got := CoresOfJobs(n); got != c.cores {
			t.Errorf("%+v: %q", c, got)
		}
		if got := TopologyManagerOf(n); got.Policy != c.policy || !slices.Equal(got.NUMA, c.lists) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
