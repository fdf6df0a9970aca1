// Package cancels has many pending jobs cancelled by one write. What was asked
// for is kept in a ConfigMap until each job's own object says the same: from
// the write on the jobs are cancelled, for everybody in this process and for
// the next one, and their objects follow at the pace that the API server likes.
package cancels

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

// Least is from how many jobs on one write is worth it: fewer are patched one
// by one, which needs no tidying up.
const Least = 32

// objectName is the ConfigMap's in Berth's namespace, dataKey where the text is.
const (
	objectName = "berth-cancelled"
	dataKey    = "jobs"
)

// maxText bounds the text: an object of the API server holds a little more.
const maxText = 900_000

// tidyPause is how long what is done is gathered before it is written.
const tidyPause = 2 * time.Second

// Cancels knows the jobs that are cancelled and whose objects do not say so
// yet. Safe for concurrent use.
type Cancels struct {
	cluster *control.Cluster
	now     func() time.Time
	log     *slog.Logger

	writing sync.Mutex // held while the object is written
	version string     // of the object

	mu    sync.RWMutex
	asked map[int64]entry
	done  chan struct{} // something is to be tidied up
}

// entry is what was asked for one job: of the run for which it waited when it
// had been requeued so many times, and of no later one.
type entry struct {
	request  *v1alpha1.CancelRequest
	requeues int32
}

// concerns tells whether the job still is to be, or is, what e asks for.
func (e entry) concerns(b *v1alpha1.BatchJob) bool {
	return e.request != nil && b.Spec.Requeues <= e.requeues
}

// New makes a Cancels that tells c of them. Call it, and Load, before the
// stores of c are fed.
func New(c *control.Cluster, now func() time.Time, log *slog.Logger) *Cancels {
	x := &Cancels{cluster: c, now: now, log: log, asked: map[int64]entry{}, done: make(chan struct{}, 1)}
	c.Jobs.BulkCancel = x.request
	c.Jobs.Subscribe(x.changed)
	return x
}

// Load reads what an earlier process left, and keeps that one from adding to it.
func (x *Cancels) Load(ctx context.Context) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	m := &corev1.ConfigMap{}
	err := x.cluster.Client.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: objectName}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading which jobs are cancelled: %w", err)
	}
	asked, err := decode(m.Data[dataKey])
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", wire.SystemNamespace, objectName, err)
	}
	x.version = m.ResourceVersion
	x.mu.Lock()
	x.asked = asked
	x.mu.Unlock()
	return x.write(ctx, asked)
}

// write stores asked, if nobody else has written meanwhile. x.writing is held.
func (x *Cancels) write(ctx context.Context, asked map[int64]entry) error {
	text := encode(asked)
	if len(text) > maxText {
		return fmt.Errorf("%d jobs are too many to be cancelled by one write", len(asked))
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wire.SystemNamespace, Name: objectName, ResourceVersion: x.version,
			// A write that changes nothing would keep the version, and let an
			// earlier leader go on.
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
		return fmt.Errorf("writing which jobs are cancelled: %w", err)
	}
	x.version = m.ResourceVersion
	return nil
}

// Add cancels jobs that wait; when it returns nil, they are. Those that have
// begun to run meanwhile are ended.
func (x *Cancels) Add(ctx context.Context, jobs []*v1alpha1.BatchJob, by string) error {
	at := metav1.NewMicroTime(x.now())
	request := &v1alpha1.CancelRequest{By: by, At: &at}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	all := maps.Clone(x.asked)
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
	x.asked = all // nobody else changes it while x.writing is held
	x.mu.Unlock()
	for _, b := range jobs {
		x.cluster.Jobs.AssumeCancelled(b.UID)
	}
	return nil
}

// request returns the request by which the job is cancelled though its object does
// not say so; nil: there is none.
func (x *Cancels) request(b *v1alpha1.BatchJob) *v1alpha1.CancelRequest {
	x.mu.RLock()
	e := x.asked[b.Spec.JobID]
	x.mu.RUnlock()
	if !e.concerns(b) {
		return nil
	}
	return e.request
}

// changed notes that the object of a job says by itself that it is cancelled,
// or was so and is back in the queue, or is gone.
func (x *Cancels) changed(old, now *v1alpha1.BatchJob) {
	b := now
	if b == nil {
		b = old
	}
	x.mu.RLock()
	e := x.asked[b.Spec.JobID]
	x.mu.RUnlock()
	if e.request == nil || now != nil && x.needed(e, now) {
		return
	}
	select {
	case x.done <- struct{}{}:
	default:
	}
}

// needed reports whether the job's object does not have yet what e requests.
func (x *Cancels) needed(e entry, b *v1alpha1.BatchJob) bool {
	return e.concerns(b) && (!b.IsFinal() || x.cluster.Jobs.IsAssumed(b))
}

// Run forgets what is done, until ctx ends.
func (x *Cancels) Run(ctx context.Context) {
	for {
		if err := x.tidy(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("what is cancelled is written again later", "error", err)
			x.again()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tidyPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-x.done:
		}
	}
}

func (x *Cancels) again() {
	select {
	case x.done <- struct{}{}:
	default:
	}
}

// tidy forgets the jobs whose objects say that they are over, or are gone.
func (x *Cancels) tidy(ctx context.Context) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	asked := x.asked // never changed: Add and tidy replace it
	x.mu.RUnlock()
	left := make(map[int64]entry, len(asked))
	for id, e := range asked {
		if b, ok := x.cluster.Job(id); ok && x.needed(e, b) {
			left[id] = e
		}
	}
	if len(left) == len(asked) {
		return nil
	}
	if err := x.write(ctx, left); err != nil {
		return err
	}
	x.mu.Lock()
	x.asked = left
	x.mu.Unlock()
	return nil
}
