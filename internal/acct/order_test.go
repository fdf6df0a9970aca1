package acct_test

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// Two goroutines may change a job at once, so that the recorder is notified of
// the older version last. It stores the newer one.
func TestOlderVersionOfAJobIsNotifiedLast(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	finished := batchJob(7, v1alpha1.StateCompleted)
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) {
		if old == nil { // before the recorder is notified of this one
			fake.Feed(c, finished)
		}
	})
	r, _ := recorder(t, c, filepath.Join(t.TempDir(), "a.db"))
	running := batchJob(7, v1alpha1.StateRunning)
	running.Status.EndTime = nil
	fake.Feed(c, running)
	eventually.Holds(t, "the record of the finished job", func() bool { return r.Stored(finished) })
}
