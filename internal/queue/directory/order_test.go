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

// TestSortPartitions: those of slurm.conf in its order, then others as they
// were made, those of one second by name.
func TestSortPartitions(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	d := directory.New(c, nil)
	made := time.Unix(1_700_000_000, 0)
	for _, p := range []struct {
		name, order string
		after       time.Duration
	}{{"alpha", "", time.Hour}, {"batch", "2", 0}, {"debug", "1", 0}, {"late", "10", 0}, {"beta", "", time.Minute}, {"gamma", "x", time.Minute}} {
		o := &v1alpha1.Partition{}
		o.Name, o.CreationTimestamp = p.name, metav1.NewTime(made.Add(p.after))
		if p.order != "" {
			o.Annotations = map[string]string{v1alpha1.OrderAnnotation: p.order}
		}
		fake.Feed(c, o)
	}
	rows := []status.Partition{{Name: "alpha"}, {Name: "batch"}, {Name: "beta"}, {Name: "debug"}, {Name: "gamma"}, {Name: "late"}}
	d.SortPartitions(rows)
	var have []string
	for _, r := range rows {
		have = append(have, r.Name)
	}
	if want := []string{"debug", "batch", "late", "beta", "gamma", "alpha"}; !slices.Equal(have, want) {
		t.Errorf("have %q, want %q", have, want)
	}
}
