package control

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func TestOverTimeLimit(t *testing.T) {
	c := &Cluster{
		Settings:   NewStore(name[*v1alpha1.Cluster]),
		Partitions: NewStore(name[*v1alpha1.Partition]),
	}
	c.Settings.Apply(&v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName, UID: "c", ResourceVersion: "1"},
		Spec:       v1alpha1.ClusterSpec{OverTimeLimit: math.MaxInt32},
	})
	five := int32(5)
	c.Partitions.Apply(&v1alpha1.Partition{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", ResourceVersion: "1"},
		Spec:       v1alpha1.PartitionSpec{OverTimeLimit: &five},
	})
	if got := c.OverTimeLimit("p"); got != 5*time.Minute {
		t.Errorf("the partition's is %s", got)
	}
	if got := c.OverTimeLimit("other"); got != 365*24*time.Hour {
		t.Errorf("UNLIMITED is %s, want a year", got)
	}
}

// A watch that begins again with a list reports a node that was deleted and registered again
// in the meantime as one update.
func TestReplacedObjectReplacesTheDeletedOne(t *testing.T) {
	node := func(uid types.UID, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: uid, ResourceVersion: version}}
	}
	s := NewStore(name[*corev1.Node])
	events := applyEvents(s)
	events.OnAdd(node("a", "1"), true)
	events.OnUpdate(node("a", "1"), node("b", "5"))
	if n, ok := s.Get("n1"); s.Len() != 1 || !ok || n.UID != "b" {
		t.Errorf("the store has %d nodes, n1 is %v; want the new one only", s.Len(), n)
	}
}
