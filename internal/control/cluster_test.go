package control

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
