package control

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// JobStore holds every job as this process sees it: BatchJobs with the spec and status
// that count. For most jobs that is the object in the API server. If this process is
// ahead of the API server, the job is assumed (kube-scheduler's word for a pod that it
// has placed and not bound yet). A job becomes assumed in four ways:
//
//   - AssumeJob adds a job that has no object yet. It represents pods, and after
//     a crash the pods themselves show that it existed.
//   - AssumeStatus changes the status of the job of a single pod. The binding of
//     the pod shows after a crash which job it is and where it runs.
//   - The object was created with a status (BatchJob.InitialStatus) and has none
//     of its own yet.
//   - The job was cancelled together with many others (see BulkCancel).
//
// An object that arrives with a status of its own confirms or corrects the job, and the
// assumption ends. Until then the assumed status stays, even if other parts of the
// object change.
type JobStore struct {
	Store[*v1alpha1.BatchJob]

	// BulkCancel returns the request by which the job was cancelled together with many
	// others, if its object does not have it yet; nil: there is none. Set it before the
	// store is filled.
	BulkCancel func(*v1alpha1.BatchJob) *v1alpha1.CancelRequest

	// assumed are the objects of the assumed jobs, by storeID, as the API server has
	// them; nil: there is no object yet. The store's mutex guards it.
	assumed map[types.UID]*v1alpha1.BatchJob
	// payload is the size of the script and environment that were dropped from each
	// job. The store's mutex guards it.
	payload map[types.UID]int64
}

// IsCreated reports whether b has an object in the API server, which gives it a UID
// and a resource version. A job without one is in this process's memory only (see
// JobStore.AssumeJob).
func IsCreated(b *v1alpha1.BatchJob) bool { return b.UID != "" || b.ResourceVersion != "" }

// IsSinglePod reports whether b represents one pod without a group.
func IsSinglePod(b *v1alpha1.BatchJob) bool {
	w := b.Spec.Workload
	return w != nil && w.Group == "" && len(w.Pods) == 1
}

// dropPayload removes script and environment from a copy in memory, where no server
// process reads them, and records their size.
func (s *JobStore) dropPayload(b *v1alpha1.BatchJob) {
	size := b.Spec.PayloadBytes()
	b.Spec.Script, b.Spec.Environment = nil, nil
	if size == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, gone := s.deleted[storeID(b)]; !gone {
		s.payload[storeID(b)] = size
	}
}

// StoredBytes returns how many bytes the job takes in the API server, including the
// script and environment that were dropped from memory (see BatchJob.StoredBytes).
func (s *JobStore) StoredBytes(b *v1alpha1.BatchJob) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	size := b.StoredBytes()
	if b.Spec.PayloadBytes() == 0 {
		size += s.payload[storeID(b)]
	}
	return size
}

// IsAssumed reports whether this process is ahead of the API server with the job.
func (s *JobStore) IsAssumed(b *v1alpha1.BatchJob) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, assumed := s.assumed[storeID(b)]
	return assumed
}

// MayAssumeStatus reports whether the status of b may be changed in memory only: it
// represents one pod, and its object has no status.
func (s *JobStore) MayAssumeStatus(b *v1alpha1.BatchJob) bool {
	return IsSinglePod(b) && (s.IsAssumed(b) || reflect.DeepEqual(b.Status, v1alpha1.BatchJobStatus{}))
}

// Apply stores a BatchJob from the API server, unless the store has a newer version or its
// deletion. If the object does not confirm or correct an assumed status, that stays.
func (s *JobStore) Apply(object *v1alpha1.BatchJob) {
	job, assumed := s.complete(object)
	s.mu.Lock()
	if !s.isNewer(object) {
		s.mu.Unlock()
		return
	}
	old, known := s.predecessor(object)
	if known && s.keepsStatus(old, object, assumed) {
		n := *job
		n.Status = old.Status
		job, assumed = &n, true
	}
	if known {
		delete(s.assumed, storeID(old))
	}
	if assumed {
		s.assumed[storeID(object)] = object
	}
	s.put(old, known, job)
	s.mu.Unlock()
	s.notifyReplaced(old, job)
}

// complete returns the job of the object: with its initial status, and cancelled if
// that was requested for many jobs at once. assumed reports that its status is not the
// object's own.
func (s *JobStore) complete(object *v1alpha1.BatchJob) (job *v1alpha1.BatchJob, assumed bool) {
	job = object
	if initial := object.InitialStatus(); initial != nil {
		n := *object
		n.DropInitialStatus()
		n.Status = *initial
		job, assumed = &n, true
	}
	job, cancelled := s.withBulkCancel(job)
	return job, assumed || cancelled
}

// predecessor returns the job that the object replaces: the version before, or the job
// that was assumed before there was an object. The store is locked.
func (s *JobStore) predecessor(object *v1alpha1.BatchJob) (old *v1alpha1.BatchJob, known bool) {
	if old, known = s.byUID[storeID(object)]; known {
		return old, true
	}
	old, known = s.byUID[nameID(object)]
	return old, known
}

// keepsStatus reports whether the status that was assumed for old stays when the object
// replaces it. The store is locked.
func (s *JobStore) keepsStatus(old, object *v1alpha1.BatchJob, hasInitial bool) bool {
	_, assumed := s.assumed[storeID(old)]
	switch {
	case !assumed, old.Status.State == "", old.Spec.JobID != object.Spec.JobID, old.Spec.Workload == nil:
		return false
	case object.Status.State != "": // confirmed or corrected
		return false
	case hasInitial:
		return IsCreated(old) // otherwise the object was created with the newer status
	}
	return true
}

// notifyReplaced notifies the subscribers that job replaced old. With another id it is
// another job.
func (s *JobStore) notifyReplaced(old, job *v1alpha1.BatchJob) {
	if old != nil && old.UID != job.UID && old.Spec.JobID != job.Spec.JobID {
		s.notify(old, nil)
		old = nil
	}
	s.notify(old, job)
}

// Remove removes the job permanently, as Store.Remove does.
func (s *JobStore) Remove(b *v1alpha1.BatchJob, now time.Time) {
	s.mu.Lock()
	old, known := s.remove(b, now)
	delete(s.assumed, storeID(b))
	delete(s.payload, storeID(b))
	s.mu.Unlock()
	if known {
		s.notify(old, nil)
	}
}

// AssumeJob adds b to the queue ahead of its object, which Cluster.EnsureCreated or
// Cluster.WriteStatus creates. b must represent pods.
func (s *JobStore) AssumeJob(b *v1alpha1.BatchJob) {
	b.UID, b.ResourceVersion = "", ""
	s.mu.Lock()
	if _, gone := s.deleted[storeID(b)]; gone {
		s.mu.Unlock()
		return
	}
	old, known := s.byUID[storeID(b)]
	s.assumed[storeID(b)] = nil
	s.put(old, known, b)
	s.mu.Unlock()
	s.notify(old, b)
}

// AssumeStatus changes the status of b in memory only and returns the changed job. It
// returns false if b is no longer the newest version. MayAssumeStatus(b) must be true.
func (s *JobStore) AssumeStatus(
	b *v1alpha1.BatchJob, at time.Time, change func(*v1alpha1.BatchJobStatus),
) (*v1alpha1.BatchJob, bool) {
	n := *b
	n.Status = StatusAfter(&b.Status, at, change)
	return &n, s.assume(b, &n)
}

// assume replaces b by n, which is not in the API server. It returns false if b is not
// what the store has.
func (s *JobStore) assume(b, n *v1alpha1.BatchJob) bool {
	s.mu.Lock()
	id := storeID(b)
	if s.byUID[id] != b {
		s.mu.Unlock()
		return false
	}
	if _, assumed := s.assumed[id]; !assumed {
		s.assumed[id] = b
	}
	s.put(b, true, n)
	s.mu.Unlock()
	s.notify(b, n)
	return true
}

// AssumeCancelled makes the job cancelled if BulkCancel has a request for it.
func (s *JobStore) AssumeCancelled(uid types.UID) {
	for {
		b, ok := s.ByUID(uid)
		if !ok {
			return
		}
		n, assumed := s.withBulkCancel(b)
		if n == b || s.replace(b, n, assumed) {
			return
		}
	}
}

// replace replaces b by n. It returns false if b is not what the store has.
func (s *JobStore) replace(b, n *v1alpha1.BatchJob, assumed bool) bool {
	if assumed {
		return s.assume(b, n)
	}
	s.mu.Lock()
	if s.byUID[storeID(b)] != b {
		s.mu.Unlock()
		return false
	}
	s.put(b, true, n)
	s.mu.Unlock()
	s.notify(b, n)
	return true
}

// withBulkCancel returns the job with the cancellation that is not in its own spec: the
// one in its status, or that of BulkCancel. assumed reports that its status changed by
// that. A job that was placed at the same moment gets only the request; the keeper ends
// it.
func (s *JobStore) withBulkCancel(b *v1alpha1.BatchJob) (job *v1alpha1.BatchJob, assumed bool) {
	if b.Spec.Cancel != nil || b.RequeueRequested() {
		return b, false
	}
	request := b.Status.Cancel
	if request == nil && s.BulkCancel != nil {
		request = s.BulkCancel(b)
	}
	if request == nil {
		return b, false
	}
	n := *b
	n.Spec.Cancel = request
	if b.Status.Cancel != nil || b.Status.State != "" && b.Status.State != v1alpha1.StatePending {
		return &n, false
	}
	n.Status = StatusAfter(&b.Status, request.At.Time, func(st *v1alpha1.BatchJobStatus) {
		st.State, st.Final, st.Reason, st.Message = v1alpha1.StateCancelled, "", "", ""
		st.Cancel, st.EndTime = request, request.At
	})
	return &n, true
}

// writtenStatus returns the status that b's object has in the API server.
func (s *JobStore) writtenStatus(b *v1alpha1.BatchJob) v1alpha1.BatchJobStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if object := s.assumed[storeID(b)]; object != nil {
		return object.Status
	}
	return b.Status
}

// EnsureCreated creates the object of b if there is none yet, and returns the job with
// it. An assumed status stays assumed.
func (c *Cluster) EnsureCreated(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	if IsCreated(b) {
		return b, nil
	}
	if _, _, err := c.create(ctx, b, &v1alpha1.BatchJobStatus{}); err != nil {
		return nil, err
	}
	n, ok := c.Job(b.Spec.JobID)
	if !ok || !IsCreated(n) { // the object has another number, or is gone again
		return nil, apierrors.NewConflict(batchJobs, b.Name, errors.New("the object is another job's"))
	}
	return n, nil
}

var batchJobs = v1alpha1.GroupVersion.WithResource("batchjobs").GroupResource()

// create creates the object of b, with a status if that has a state. created is
// false if the object existed; it is returned as it is. A job whose namespace is
// gone is removed.
func (c *Cluster) create(ctx context.Context, b *v1alpha1.BatchJob, initial *v1alpha1.BatchJobStatus) (
	object *v1alpha1.BatchJob, created bool, err error) {
	object, created = b.DeepCopy(), true
	object.Status = v1alpha1.BatchJobStatus{}
	if initial.State != "" {
		if err := object.SetInitialStatus(initial); err != nil {
			return nil, false, err
		}
	}
	if err = c.CreateObject(ctx, object); apierrors.IsAlreadyExists(err) {
		object, created = &v1alpha1.BatchJob{}, false
		err = c.ReadObject(ctx, client.ObjectKeyFromObject(b), object)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		c.Jobs.Remove(b, time.Now())
		return nil, false, err
	case err != nil:
		return nil, false, fmt.Errorf("creating the object of job %d: %w", b.Spec.JobID, err)
	}
	c.ApplyJob(object)
	return object, created, nil
}

// createWithStatus creates the object of b, which has none, with a status. created
// is false if the object existed without a status: the status is still to be written.
func (c *Cluster) createWithStatus(ctx context.Context, b *v1alpha1.BatchJob, status *v1alpha1.BatchJobStatus) (
	object *v1alpha1.BatchJob, created bool, err error) {
	if known, _ := c.Jobs.ByUID(storeID(b)); known != b {
		return nil, false, apierrors.NewConflict(batchJobs, b.Name, errors.New("the job has changed"))
	}
	object, created, err = c.create(ctx, b, status)
	if err != nil {
		return nil, false, err
	}
	if !created && (object.Spec.JobID != b.Spec.JobID || object.HasStatus()) {
		return nil, false, apierrors.NewConflict(batchJobs, b.Name, errors.New("the object existed"))
	}
	return object, created, nil
}

// WriteStatus changes the status of b in the API server, if b is still the newest
// version, and notes the change of state in the status's history. It returns the
// job as written; the store has it, too. The error is the API server's: a conflict
// if b is not the newest version, which the store then has: callers need not read the
// object again. The object of a job that has none is created.
func (c *Cluster) WriteStatus(ctx context.Context, b *v1alpha1.BatchJob, at time.Time,
	change func(*v1alpha1.BatchJobStatus)) (*v1alpha1.BatchJob, error) {
	status := StatusAfter(&b.Status, at, change)
	base := *b
	if IsCreated(b) {
		base.Status = c.Jobs.writtenStatus(b)
	} else {
		object, created, err := c.createWithStatus(ctx, b, &status)
		if err != nil {
			return nil, err
		}
		base = *object
		if created {
			base.DropInitialStatus()
			base.Status = status
			return &base, nil
		}
	}
	n := base.DeepCopy()
	n.Status = status
	n, err := c.patchStatus(ctx, &base, n)
	if err != nil {
		return nil, err
	}
	c.ApplyJob(n)
	return n, nil
}
