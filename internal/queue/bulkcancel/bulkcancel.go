// Package bulkcancel cancels many pending jobs by one write. The requests are in a
// ConfigMap until each job's own object has its request: with that write the jobs are
// cancelled, for everybody in this process and for the next leader, and their objects
// follow as fast as the API server accepts them.
package bulkcancel

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// MinJobs is the number of jobs from which one write is worth it. Fewer are patched one
// by one, which leaves nothing to clean up.
const MinJobs = 32

// objectName is the name of the ConfigMap in Berth's namespace, dataKey the key of
// the text in it.
const (
	objectName = "berth-cancelled"
	dataKey    = "jobs"
)

// maxText bounds the text in bytes. An object of the API server may be a little larger.
const maxText = 900_000

// pruneInterval is the minimum time between two writes that remove completed requests.
const pruneInterval = 2 * time.Second

// Canceller has the requests of jobs whose objects do not have them yet. Safe for
// concurrent use.
type Canceller struct {
	cluster *control.Cluster
	now     func() time.Time
	log     *slog.Logger

	writing sync.Mutex // held while the object is written
	version string     // of the object

	mu       sync.RWMutex
	requests map[int64]entry // by job; never changed, but replaced as a whole
	prunable chan struct{}   // some requests may be done
}

// entry is the request to cancel one job. It concerns the run for which the job was
// pending after that number of requeues, and no later one.
type entry struct {
	request  *v1alpha1.CancelRequest
	requeues int32
}

// concerns reports whether e is a request about the present run of the job.
func (e entry) concerns(b *v1alpha1.BatchJob) bool {
	return e.request != nil && b.Spec.Requeues <= e.requeues
}

// New returns a Canceller whose requests c's store of jobs applies. Call it, and Load,
// before the stores of c are fed.
func New(c *control.Cluster, now func() time.Time, log *slog.Logger) *Canceller {
	x := &Canceller{
		cluster: c, now: now, log: log,
		requests: map[int64]entry{}, prunable: make(chan struct{}, 1),
	}
	c.Jobs.BulkCancel = x.request
	c.Jobs.Subscribe(x.changed)
	return x
}

// Load reads the requests that an earlier leader left, and writes them, after which the
// earlier leader cannot add any.
func (x *Canceller) Load(ctx context.Context) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	m := &corev1.ConfigMap{}
	err := x.cluster.Client.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: objectName}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the bulk cancellations: %w", err)
	}
	requests, err := decode(m.Data[dataKey])
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", wire.SystemNamespace, objectName, err)
	}
	x.version = m.ResourceVersion
	x.mu.Lock()
	x.requests = requests
	x.mu.Unlock()
	return x.write(ctx, requests)
}

// write stores the requests, unless another process has written since. x.writing is
// held.
func (x *Canceller) write(ctx context.Context, requests map[int64]entry) error {
	text := encode(requests)
	if len(text) > maxText {
		return fmt.Errorf("%d jobs are too many to be cancelled by one write", len(requests))
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wire.SystemNamespace, Name: objectName, ResourceVersion: x.version,
			// A write without a change would keep the resource version, and an earlier
			// leader could go on writing.
			Annotations: map[string]string{"berth.hpc/written": x.now().UTC().Format(time.RFC3339Nano)},
		},
		Data: map[string]string{dataKey: text},
	}
	var err error
	if x.version == "" {
		err = x.cluster.Client.Create(ctx, m)
	} else {
		err = x.cluster.Client.Update(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("writing the bulk cancellations: %w", err)
	}
	x.version = m.ResourceVersion
	return nil
}

// Cancel cancels pending jobs on behalf of the user by; when it returns nil, they are
// cancelled. Jobs that have been placed meanwhile are ended.
func (x *Canceller) Cancel(ctx context.Context, jobs []*v1alpha1.BatchJob, by string) error {
	at := metav1.NewMicroTime(x.now())
	request := &v1alpha1.CancelRequest{By: by, At: &at}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	all := maps.Clone(x.requests)
	x.mu.RUnlock()
	for _, b := range jobs {
		if !all[b.Spec.JobID].concerns(b) {
			all[b.Spec.JobID] = entry{request, b.Spec.Requeues}
		}
	}
	if err := x.write(ctx, all); err != nil {
		return err
	}
	x.mu.Lock()
	x.requests = all // only holders of x.writing replace it
	x.mu.Unlock()
	for _, b := range jobs {
		x.cluster.Jobs.AssumeCancelled(b.UID)
	}
	return nil
}

// request returns the request to cancel the job that its object does not have yet, or
// nil.
func (x *Canceller) request(b *v1alpha1.BatchJob) *v1alpha1.CancelRequest {
	x.mu.RLock()
	e := x.requests[b.Spec.JobID]
	x.mu.RUnlock()
	if !e.concerns(b) {
		return nil
	}
	return e.request
}

// changed requests a prune if the object of a job no longer needs its request: it has
// the cancellation, or was requeued after it, or is gone.
func (x *Canceller) changed(old, now *v1alpha1.BatchJob) {
	b := now
	if b == nil {
		b = old
	}
	x.mu.RLock()
	e := x.requests[b.Spec.JobID]
	x.mu.RUnlock()
	if e.request == nil || now != nil && x.needed(e, now) {
		return
	}
	x.requestPrune()
}

// needed reports whether the job's object does not have yet what e requests.
func (x *Canceller) needed(e entry, b *v1alpha1.BatchJob) bool {
	return e.concerns(b) && (!b.IsFinal() || x.cluster.Jobs.IsAssumed(b))
}

// Run removes completed requests until ctx ends.
func (x *Canceller) Run(ctx context.Context) {
	for {
		if err := x.prune(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("cannot remove completed bulk cancellations; will retry", "error", err)
			x.requestPrune()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pruneInterval):
		}
		select {
		case <-ctx.Done():
			return
		case <-x.prunable:
		}
	}
}

func (x *Canceller) requestPrune() {
	select {
	case x.prunable <- struct{}{}:
	default:
	}
}

// prune removes the requests of jobs whose objects have them, or are gone.
func (x *Canceller) prune(ctx context.Context) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	requests := x.requests
	x.mu.RUnlock()
	left := make(map[int64]entry, len(requests))
	for id, e := range requests {
		if b, ok := x.cluster.Job(id); ok && x.needed(e, b) {
			left[id] = e
		}
	}
	if len(left) == len(requests) {
		return nil
	}
	if err := x.write(ctx, left); err != nil {
		return err
	}
	x.mu.Lock()
	x.requests = left
	x.mu.Unlock()
	return nil
}
