package attach

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestAbandonedJobs: a job whose client has hung up is abandoned soon. A client that
// was lost together with its API server, that came through another API role, or
// that has not connected since this process leads, has longer to reconnect.
func TestAbandonedJobs(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newClients(func() time.Time { return now })
	broken := new(connection)
	broken.closed.Store(1)
	connections := map[int64]*connection{1: new(connection), 2: broken, 3: nil, 4: new(connection)}
	for id := int64(1); id <= 5; id++ {
		b := &v1alpha1.BatchJob{}
		b.Spec.JobID, b.Spec.Job.Batch.Client, b.Status.State = id, "srun", v1alpha1.StateRunning
		c.jobChanged(nil, b)
		if id <= 4 {
			c.connect(id, connections[id])()
		}
	}
	disconnect := c.connect(4, connections[4]) // it reconnects
	for _, tt := range []struct {
		after time.Duration
		want  []int64
	}{{hangupTimeout, nil}, {time.Second, []int64{1}}, {absenceTimeout, []int64{1, 2, 3, 5}}} {
		now = now.Add(tt.after)
		got := c.abandoned()
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("at %v: %v, want %v", now, got, tt.want)
		}
	}
	connections[4].closed.Store(1) // the API server ends, and its clients' connections with it
	disconnect()
	now = now.Add(hangupTimeout + time.Second)
	if slices.Contains(c.abandoned(), 4) {
		t.Error("a job is abandoned because its API server has ended")
	}
}
