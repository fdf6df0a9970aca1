package control

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A job that stands for pods may be ahead of its object, in this process's store
// only: first as a whole (see Presume), then by its start, and that of a single pod
// by its placement too. The object of several pods is made with their placement,
// the one of a single pod a little later, or at its end. Nothing is lost with the
// process: pods without a node wait by themselves, and the binding of a single one
// says which job it is and where it runs.

// MayRunAhead tells whether b may be ahead of its object: it stands for one pod
// and its object has no status yet.
func MayRunAhead(b *v1alpha1.BatchJob) bool {
	return Single(b) && (b.Status.Unwritten || reflect.DeepEqual(b.Status, v1alpha1.BatchJobStatus{}))
}

// Single tells whether b stands for one pod that belongs to no group.
func Single(b *v1alpha1.BatchJob) bool {
	w := b.Spec.Workload
	return w != nil && w.Group == "" && len(w.Pods) == 1
}

// GoAhead has n, made from b, take b's place in the store and nowhere else, which
// b's object must have no status of its own for;
// false: b is not the newest version any more.
func (c *Cluster) GoAhead(b, n *v1alpha1.BatchJob) bool {
	n.Status.Unwritten = true
	return c.Jobs.Swap(b, n)
}

// ahead has a newer version of an object keep the status that it has only here.
func ahead(old, now *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	switch {
	case old.Spec.JobID != now.Spec.JobID, !old.Status.Unwritten, old.Spec.Workload == nil,
		now.Status.State != "" && (!now.Status.Unwritten || Unmade(old)):
		return now
	}
	n := *now
	n.Status = old.Status
	return &n
}

// unmade begins the UID of a job that has no object yet. The rest says which
// object that will be.
const unmade = "unmade-"

// Unmade tells whether b is only in this process's memory: nobody has made its
// object yet (see Presume).
func Unmade(b *v1alpha1.BatchJob) bool { return strings.HasPrefix(string(b.UID), unmade) }

// unmadeUID is the UID of b, a job by its object's name, for as long as there is
// no such object.
func unmadeUID(b *v1alpha1.BatchJob) types.UID {
	return types.UID(unmade + b.Namespace + "/" + b.Name)
}

// Presume takes b into the queue ahead of its object, which Make makes, or
// WriteStatus. It must stand for pods: what says of it after a crash that it was
// there are the pods themselves.
func (c *Cluster) Presume(b *v1alpha1.BatchJob) {
	b.UID, b.ResourceVersion = unmadeUID(b), ""
	c.Jobs.Apply(b)
}

// Make makes the object of b, if there is none yet, and returns the job as it is
// then; what it is ahead of its object by stays in the store.
func (c *Cluster) Make(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	if !Unmade(b) {
		return b, nil
	}
	if _, _, err := c.create(ctx, b, &v1alpha1.BatchJobStatus{}); err != nil {
		return nil, err
	}
	n, ok := c.Job(b.Spec.JobID)
	if !ok || Unmade(n) { // another number is on the object, or it is gone again
		return nil, apierrors.NewConflict(batchJobs, b.Name, errors.New("the object is another job's"))
	}
	return n, nil
}

var batchJobs = v1alpha1.GroupVersion.WithResource("batchjobs").GroupResource()

// create makes the object of b with a status, where that says anything. fresh is
// false if the object was there: then it is as it was. A job whose namespace is
// gone is none any more.
func (c *Cluster) create(ctx context.Context, b *v1alpha1.BatchJob, with *v1alpha1.BatchJobStatus) (o *v1alpha1.BatchJob, fresh bool, err error) {
	o, fresh = b.DeepCopy(), true
	o.UID, o.ResourceVersion, o.Status = "", "", v1alpha1.BatchJobStatus{}
	if with.State != "" {
		if err := o.BeginWith(with); err != nil {
			return nil, false, err
		}
	}
	if err = c.Client.Create(ctx, o); apierrors.IsAlreadyExists(err) {
		o, fresh = &v1alpha1.BatchJob{}, false
		err = c.Client.Get(ctx, client.ObjectKeyFromObject(b), o)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		c.Jobs.Remove(b, time.Now())
		return nil, false, err
	case err != nil:
		return nil, false, fmt.Errorf("making the object of job %d: %w", b.Spec.JobID, err)
	}
	c.ApplyJob(o)
	return o, fresh, nil
}

// makeWith makes the object of before, which has none, with the status of n. made
// is false if the object was there and has n's status still to get: before is
// that object then.
func (c *Cluster) makeWith(ctx context.Context, before **v1alpha1.BatchJob, n *v1alpha1.BatchJob) (made bool, err error) {
	b := *before
	if known, _ := c.Jobs.ByUID(b.UID); known != b {
		return false, apierrors.NewConflict(batchJobs, b.Name, errors.New("the job has changed"))
	}
	o, fresh, err := c.create(ctx, b, &n.Status)
	if err != nil {
		return false, err
	}
	if !fresh && (o.Spec.JobID != b.Spec.JobID || o.Begun()) {
		return false, apierrors.NewConflict(batchJobs, b.Name, errors.New("the object was there"))
	}
	status := n.Status
	o.DeepCopyInto(n)
	n.TakeStatus()
	*before, n.Status, n.Status.Unwritten = o, status, fresh
	return fresh, nil
}

// memberIndex finds the place of a pod in a large workload: that of the one
// last asked for, because a gang's pods come one after the other.
type memberIndex struct {
	last atomic.Pointer[members]
}

type members struct {
	pods  *v1alpha1.WorkloadPod // the first of them: another list has another
	count int
	index map[types.UID]int
}

// manyMembers are more than are quickly looked through.
const manyMembers = 16

func (x *memberIndex) of(b *v1alpha1.BatchJob, uid types.UID) (int, bool) {
	pods := b.Spec.Workload.Pods
	if len(pods) <= manyMembers {
		for i := range pods {
			if pods[i].UID == uid {
				return i, true
			}
		}
		return 0, false
	}
	m := x.last.Load()
	if m == nil || m.pods != &pods[0] || m.count != len(pods) {
		m = &members{&pods[0], len(pods), make(map[types.UID]int, len(pods))}
		for i := range pods {
			m.index[pods[i].UID] = i
		}
		x.last.Store(m)
	}
	i, ok := m.index[uid]
	return i, ok
}
