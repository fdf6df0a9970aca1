package directory_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// TestSortPartitions: the partitions of slurm.conf come in its order, then others by
// their age, those of the same second by name.
func TestSortPartitions(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	d := directory.New(c, nil)
	created := time.Unix(1_700_000_000, 0)
	for _, p := range []struct {
		name, order string
		after       time.Duration
	}{
		{"alpha", "", time.Hour}, {"batch", "2", 0}, {"debug", "1", 0}, {"late", "10", 0},
		{"beta", "", time.Minute}, {"gamma", "x", time.Minute},
	} {
		o := &v1alpha1.Partition{}
		o.Name, o.CreationTimestamp = p.name, metav1.NewTime(created.Add(p.after))
		if p.order != "" {
			o.Annotations = map[string]string{v1alpha1.OrderAnnotation: p.order}
		}
		fake.Feed(c, o)
	}
	var rows []status.Partition
	for _, name := range []string{"alpha", "batch", "beta", "debug", "gamma", "late"} {
		rows = append(rows, status.Partition{Name: name})
	}
	d.SortPartitions(rows)
	var got []string
	for _, r := range rows {
		got = append(got, r.Name)
	}
	if want := []string{"debug", "batch", "late", "beta", "gamma", "alpha"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	names := []string{"batch", "debug"}
	nodes := []status.Node{{Partitions: names}, {}}
	d.SortNodePartitions(nodes)
	if got := nodes[0].Partitions; !slices.Equal(got, []string{"debug", "batch"}) || names[0] != "batch" {
		t.Errorf("a node has the partitions %q, and the list before is %q", got, names)
	}
}
