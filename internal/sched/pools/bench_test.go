package pools

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// BenchmarkThousandNodes measures what a pool of 1,000 nodes, half of which run, adds to a
// planning cycle.
func BenchmarkThousandNodes(b *testing.B) {
	w := newWorld()
	w.pool.Spec.Nodes = "c[0001-1000]"
	var nodes []*corev1.Node
	for i := range 500 {
		name := fmt.Sprintf("c%04d", i+1)
		w.register(name, "4", corev1.ConditionTrue)
		nodes = append(nodes, w.nodes[name])
		w.held[name] = true
		w.pool.Status.Nodes = append(w.pool.Status.Nodes, v1alpha1.PoolNode{
			Name: name, State: v1alpha1.PoolRunning, Requested: true, Since: metav1.NewMicroTime(start),
		})
	}
	all := []*v1alpha1.NodePool{w.pool}
	f := &Facts{
		Now: start.Add(time.Minute), Held: w.held, Planned: w.planned,
		Node:   func(name string) *corev1.Node { return w.nodes[name] },
		IsBusy: func(string) bool { return false }, Used: func(string) {},
		IdleSince: func(string) time.Time { return start },
	}
	b.Run("Merge", func(b *testing.B) {
		for b.Loop() {
			Merge(all, nodes, start)
		}
	})
	b.Run("Next", func(b *testing.B) {
		for b.Loop() {
			Next(w.pool, Assign(all)[w.pool.Name], f)
		}
	})
}
