package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// Nodes that the status of a pool does not list are powered down, and cost nothing.
func TestMetricsOfNodePools(t *testing.T) {
	p := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	p.Spec.Nodes, p.Spec.CostPerHour = "c[1-10]", "1.50"
	p.Status.Problem = "resources has no cpu"
	for i, state := range []string{
		v1alpha1.PoolRunning, v1alpha1.PoolRunning, v1alpha1.PoolPoweringUp, v1alpha1.PoolPoweringDown,
		v1alpha1.PoolFailed, v1alpha1.PoolPoweredDown,
	} {
		p.Status.Nodes = append(p.Status.Nodes, v1alpha1.PoolNode{Name: fmt.Sprintf("c%d", i+1), State: state})
	}
	c := fake.Cluster(interceptor.Funcs{})
	c.NodePools.Apply(p)
	var got []string
	(&collector{cluster: c}).pools(func(d *prometheus.Desc, v float64, labels ...string) {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		got = append(got, fmt.Sprintf("%s %s %v", name, strings.Join(labels, " "), v))
	})
	slices.Sort(got)
	want := []string{
		"berth_node_pool_cost_per_hour cloud 6",
		"berth_node_pool_nodes cloud failed 1", "berth_node_pool_nodes cloud powered_down 5",
		"berth_node_pool_nodes cloud powering_down 1", "berth_node_pool_nodes cloud powering_up 1",
		"berth_node_pool_nodes cloud running 2", "berth_node_pool_problem cloud 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
