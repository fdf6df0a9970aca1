package localcluster

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Only pools that came from slurm.conf go when slurm.conf no longer has them.
func TestFormerPools(t *testing.T) {
	pool := func(name string, spec v1alpha1.NodePoolSpec) v1alpha1.NodePool {
		return v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	own := v1alpha1.NodePoolSpec{Program: &v1alpha1.NodeProgram{Resume: "/state/resume-nodes"}}
	have := []v1alpha1.NodePool{
		pool("kept", own), pool("former", own),
		pool("site", v1alpha1.NodePoolSpec{Program: &v1alpha1.NodeProgram{Resume: "/usr/local/sbin/resume"}}),
		pool("karpenter", v1alpha1.NodePoolSpec{Karpenter: &v1alpha1.NodeKarpenter{}}),
	}
	c := Config{StateDir: "/state", NodePools: []v1alpha1.NodePool{pool("kept", v1alpha1.NodePoolSpec{})}}
	if got, want := formerPools(c, have), []string{"former"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
