package api

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A job of srun or salloc lives without them for as long as forsaken: a client
// that lost its connection, or whose API server or API role was replaced, comes
// back sooner. Where the API server lives and says that the client has closed
// its connection, as a kernel does for a process that was killed, it is hungUp:
// a client that lives, behind a gateway that did this, comes back at once.
const (
	forsaken = 30 * time.Second
	hungUp   = 5 * time.Second
	// outlives is how much longer another connection of an API server stands that
	// lives, than one that a client has closed: one that dies closes all at once.
	outlives = 2 * time.Second
)

// owners knows the jobs that a client waits for, and who listens to a job.
type owners struct {
	now func() time.Time

	mu    sync.Mutex
	jobs  map[int64]*owned        // those with job.batch.client
	turns map[int64]chan struct{} // closed at the job's next change
}

// owned is a job that belongs to a running srun or salloc.
type owned struct {
	here int       // connections of its owner
	left time.Time // when the last one went, or the job was first seen
	link *link     // that the last one came over; nil: unknown
}

func newOwners(now func() time.Time) *owners {
	return &owners{now: now, jobs: map[int64]*owned{}, turns: map[int64]chan struct{}{}}
}

// jobChanged follows the queue.
func (o *owners) jobChanged(old, now *v1alpha1.BatchJob) {
	b := now
	if b == nil {
		b = old
	}
	id := b.Spec.JobID
	o.mu.Lock()
	defer o.mu.Unlock()
	if ch := o.turns[id]; ch != nil {
		close(ch)
		delete(o.turns, id)
	}
	switch {
	case !waitedFor(b) || id == 0:
	case now == nil || !pending(b) && !live(b):
		delete(o.jobs, id)
	case o.jobs[id] == nil:
		o.jobs[id] = &owned{left: o.now()}
	}
}

func waitedFor(b *v1alpha1.BatchJob) bool {
	client := b.Spec.Job.Batch.Client
	return client == "srun" || client == "salloc"
}

// changed is closed when the job changes after this call.
func (o *owners) changed(id int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns[id] == nil {
		o.turns[id] = make(chan struct{})
	}
	return o.turns[id]
}

// hold notes that the job's owner is there, until the function it returns is
// called.
func (o *owners) hold(id int64, over *link) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.jobs[id]
	if x == nil {
		return func() {}
	}
	x.here++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		x.here--
		x.left, x.link = o.now(), over
	}
}

// lost are the jobs whose owner has been away for too long.
func (o *owners) lost() (ids []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, x := range o.jobs {
		wait := forsaken
		if x.link.stands() {
			wait = hungUp
		}
		if x.here == 0 && o.now().Sub(x.left) > wait {
			ids = append(ids, id)
		}
	}
	return ids
}

// Watch cancels the jobs of clients that are gone, until ctx is cancelled.
func (a *API) Watch(ctx context.Context) {
	tick := time.NewTicker(hungUp / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, id := range a.owners.lost() {
			if b, ok := a.Operations.Cluster.Job(id); ok && b.Spec.Cancel == nil {
				at := metav1.NewMicroTime(a.Now())
				request := v1alpha1.CancelRequest{By: b.Spec.User, At: &at}
				// What fails is tried again at the next turn.
				_ = a.Operations.patch(ctx, b, map[string]any{"spec": map[string]any{"cancel": request}})
			}
		}
	}
}
