package attach

import (
	"context"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
)

// A job of srun or salloc is cancelled when its client has been away for
// absenceTimeout: a client that lost its connection, or whose API server or API
// role was replaced, reconnects sooner. If the API server is alive and reports that
// the client has closed its connection, as the kernel does for a process that was
// killed, hangupTimeout is enough: a client behind a gateway that closed the
// connection reconnects at once.
const (
	absenceTimeout = 30 * time.Second
	hangupTimeout  = 5 * time.Second
	// outliveTime is how much longer another connection of the API server must stay open
	// than one that a client has closed to show that the API server is alive. An API server
	// that dies closes all of its connections at once.
	outliveTime = 2 * time.Second
)

// clients tracks the srun or salloc process that each of their jobs belongs to, and
// wakes those who wait for a change of a job.
type clients struct {
	now func() time.Time

	mu      sync.Mutex
	jobs    map[int64]*clientJob    // those with job.batch.client
	waiters map[int64]chan struct{} // closed at the job's next change
}

// clientJob is a job that ends when its client goes away.
type clientJob struct {
	connected int         // connections of the client
	left      time.Time   // when the last one ended, or the job appeared
	last      *connection // over which the last one came; nil: not known
}

func newClients(now func() time.Time) *clients {
	return &clients{now: now, jobs: map[int64]*clientJob{}, waiters: map[int64]chan struct{}{}}
}

// jobChanged updates the clients after a change of a job in the store.
func (c *clients) jobChanged(old, now *v1alpha1.BatchJob) {
	b := now
	if b == nil {
		b = old
	}
	id := b.Spec.JobID
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.waiters[id]; ch != nil {
		close(ch)
		delete(c.waiters, id)
	}
	switch {
	case !hasClient(b) || id == 0:
	case now == nil || !change.Pending(b) && !change.Live(b):
		delete(c.jobs, id)
	case c.jobs[id] == nil:
		c.jobs[id] = &clientJob{left: c.now()}
	}
}

// hasClient reports whether the job belongs to a process of srun or salloc.
func hasClient(b *v1alpha1.BatchJob) bool {
	client := b.Spec.Job.Batch.Client
	return client == "srun" || client == "salloc"
}

// changed returns a channel that is closed when the job changes after this call.
func (c *clients) changed(id int64) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiters[id] == nil {
		c.waiters[id] = make(chan struct{})
	}
	return c.waiters[id]
}

// connect records that the job's client is connected, until disconnect is called.
func (c *clients) connect(id int64, over *connection) (disconnect func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[id]
	if j == nil {
		return func() {}
	}
	j.connected++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		j.connected--
		j.left, j.last = c.now(), over
	}
}

// abandoned returns the jobs whose client has been away for too long.
func (c *clients) abandoned() (ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, j := range c.jobs {
		timeout := absenceTimeout
		if j.last.isOpen() {
			timeout = hangupTimeout
		}
		if j.connected == 0 && c.now().Sub(j.left) > timeout {
			ids = append(ids, id)
		}
	}
	return ids
}

// CancelAbandoned cancels the jobs of clients that have gone away, until ctx ends.
func (s *Server) CancelAbandoned(ctx context.Context) {
	tick := time.NewTicker(hangupTimeout / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, id := range s.clients.abandoned() {
			_ = s.Operations.CancelForOwner(ctx, id) // a failure is retried at the next tick
		}
	}
}
