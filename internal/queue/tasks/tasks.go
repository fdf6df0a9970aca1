// Package tasks splits tasks off job arrays. A task that is to start, or to be changed
// by itself, becomes a BatchJob whose name is determined by its array and index. A
// repeated split, also after a crash, therefore finds the same object, so that no task
// is lost and none runs twice. The array's own record of its remaining tasks is written
// later; until then the objects count.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
)

// ErrGone means that a task cannot be split off, because it is no longer pending in its
// array.
var ErrGone = errors.New("the task is no longer pending in its array")

// maxConcurrentCreates limits the objects that are created at the same time.
const maxConcurrentCreates = 16

// recordAfter is the number of tasks that may be split off before the array's own
// record is updated. Until then, each computation of the remaining tasks considers
// their objects; a write for every task would double the writes of an array.
const recordAfter = 64

// Split makes the array's tasks with these indexes jobs of their own and returns them
// as stored, in the same order; an index may be repeated. The last remaining task is the array's own job: the
// last one to start, or the one from which others were split off before they start
// (initial is nil), as in Slurm. If a task is not pending in the array, Split returns
// ErrGone and splits off nothing.
//
// initial has, by index, the initial status of the object of a task. The caller must
// check whether the returned job has it: the array's own job, and objects that existed
// before, do not. It may be nil.
func Split(ctx context.Context, c *control.Cluster, arrayJobID int64, indexes []int32,
	initial map[int32]*v1alpha1.BatchJobStatus) ([]*v1alpha1.BatchJob, error) {
	unlock, err := c.LockArray(ctx, arrayJobID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	whole, rest, err := pendingArray(c, arrayJobID)
	if err != nil {
		return nil, err
	}
	for _, i := range indexes {
		if !rest.Has(i) {
			return nil, ErrGone
		}
	}
	split, own := slices.Compact(slices.Sorted(slices.Values(indexes))), []int32(nil)
	if last := len(split) - 1; last >= 0 && len(split) == len(rest) {
		split, own = split[:last], split[last:]
	}
	created, err := createAll(ctx, c, whole, split, initial)
	if err != nil {
		return nil, err
	}
	left := rest.Without(func(i int32) bool { return slices.Contains(split, i) })
	if initial == nil && len(left) == 1 {
		own = left
	}
	if len(own) == 0 && array.Unrecorded(whole, left) < recordAfter {
		return inOrder(indexes, created, nil), nil
	}
	whole, err = record(ctx, c, arrayJobID, func(s *v1alpha1.ArrayStatus) {
		if s.Pending = left.String(); len(own) > 0 {
			s.Pending, s.Own = "", &own[0]
		}
	})
	if err != nil {
		return nil, err
	}
	return inOrder(indexes, created, whole), nil
}

// inOrder returns the jobs of the tasks in the order of indexes; whole is the job of
// the one for which none was created.
func inOrder(indexes []int32, created map[int32]*v1alpha1.BatchJob, whole *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	out := make([]*v1alpha1.BatchJob, len(indexes))
	for i, index := range indexes {
		if out[i] = created[index]; out[i] == nil {
			out[i] = whole
		}
	}
	return out
}

// Drop removes tasks from the remaining tasks of the array: they will never run, and
// jobs that depend on the success of the whole array cannot start any more. left is the
// number of tasks that remain; if it is 0, nothing was written, because the array as a
// whole has to be cancelled.
func Drop(ctx context.Context, c *control.Cluster, arrayJobID int64, indexes []int32) (left int, err error) {
	unlock, err := c.LockArray(ctx, arrayJobID)
	if err != nil {
		return 0, err
	}
	defer unlock()
	_, rest, err := pendingArray(c, arrayJobID)
	if err != nil {
		return 0, err
	}
	kept := rest.Without(func(i int32) bool { return slices.Contains(indexes, i) })
	if len(kept) == 0 || len(kept) == len(rest) {
		return len(kept), nil
	}
	_, err = record(ctx, c, arrayJobID, func(s *v1alpha1.ArrayStatus) { s.Pending, s.Failed = kept.String(), true })
	return len(kept), err
}

// pendingArray returns the array and its remaining tasks; ErrGone if it is not pending.
func pendingArray(c *control.Cluster, id int64) (*v1alpha1.BatchJob, array.Set, error) {
	b, ok := c.Job(id)
	if !ok || !array.Whole(b) || b.Spec.Cancel != nil || b.DeletionTimestamp != nil ||
		b.Status.State != "" && b.Status.State != v1alpha1.StatePending {
		return nil, nil, ErrGone
	}
	return b, array.Rest(b, c.SplitOff(id)), nil
}

// createAll creates the objects of the tasks, by index.
func createAll(ctx context.Context, c *control.Cluster, whole *v1alpha1.BatchJob, indexes []int32,
	initial map[int32]*v1alpha1.BatchJobStatus) (map[int32]*v1alpha1.BatchJob, error) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		created = make(map[int32]*v1alpha1.BatchJob, len(indexes))
		errs    []error
		slots   = make(chan struct{}, maxConcurrentCreates)
	)
	for _, index := range indexes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t, err := create(ctx, c, whole, index, initial[index])
			mu.Lock()
			defer mu.Unlock()
			if created[index] = t; err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return created, errors.Join(errs...)
}

// create creates the object of one task, or finds it.
func create(
	ctx context.Context, c *control.Cluster, whole *v1alpha1.BatchJob, index int32, initial *v1alpha1.BatchJobStatus,
) (*v1alpha1.BatchJob, error) {
	t := array.Split(whole, index)
	if initial != nil {
		if err := t.SetInitialStatus(initial); err != nil {
			return nil, err
		}
	}
	return createOrFind(ctx, c, whole, t)
}

// Components creates the jobs of the further components of the heterogeneous job that do
// not exist yet.
func Components(ctx context.Context, c *control.Cluster, whole *v1alpha1.BatchJob) error {
	have := map[string]bool{}
	for _, b := range c.SplitOff(whole.Spec.JobID) {
		have[b.Name] = true
	}
	for i := range whole.Spec.Components {
		one := array.Component(whole, i)
		if have[one.Name] {
			continue
		}
		if _, err := createOrFind(ctx, c, whole, one); err != nil {
			return err
		}
	}
	return nil
}

// createOrFind creates the object t, which is split off whole, and returns it as stored. If
// an object of that name exists and was split off whole, it returns that one.
func createOrFind(ctx context.Context, c *control.Cluster, whole, t *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	if err := admit(ctx, c, t); err != nil {
		return nil, err
	}
	name := t.Name
	err := c.CreateObject(ctx, t)
	if apierrors.IsAlreadyExists(err) {
		t = &v1alpha1.BatchJob{}
		err = c.ReadObject(ctx, client.ObjectKey{Namespace: whole.Namespace, Name: name}, t)
	}
	if err != nil {
		return nil, fmt.Errorf("splitting %s off job %d: %w", name, whole.Spec.JobID, err)
	}
	if t.Spec.Origin == nil || t.Spec.Origin.UID != whole.UID {
		return nil, fmt.Errorf("another BatchJob %s/%s has the name of a part of job %d; delete it", t.Namespace,
			t.Name,
			whole.Spec.JobID)
	}
	c.ApplyJob(t)
	if known, ok := c.Jobs.ByUID(t.UID); ok {
		return known, nil
	}
	t.Status = *t.CurrentStatus()
	return t, nil
}

// admit does what admission does for a job that is split off, if this process assigns job
// ids: then the API server does not call the webhooks (see exceptOwnWrites in package app).
func admit(ctx context.Context, c *control.Cluster, t *v1alpha1.BatchJob) error {
	if c.NextID == nil {
		return nil
	}
	id := t.Spec.JobID // of a component: it was reserved together with that of the first one
	if id == 0 {
		var err error
		if id, err = c.NextID(ctx); err != nil {
			return err
		}
	}
	t.Spec.JobID = id
	t.Labels = map[string]string{wire.LabelUser: t.Spec.User, wire.LabelJobID: strconv.FormatInt(id, 10)}
	t.Finalizers = []string{wire.Finalizer}
	return nil
}

// record changes the status of the array's tasks in its object.
func record(
	ctx context.Context, c *control.Cluster, id int64, change func(*v1alpha1.ArrayStatus),
) (*v1alpha1.BatchJob, error) {
	for {
		b, ok := c.Job(id)
		if !ok {
			return nil, ErrGone
		}
		_, err := c.WriteStatus(ctx, b, time.Now(), func(st *v1alpha1.BatchJobStatus) {
			if st.Array == nil {
				st.Array = &v1alpha1.ArrayStatus{}
			}
			change(st.Array)
		})
		switch {
		case apierrors.IsConflict(err):
			continue // WriteStatus has read the newest version
		case err != nil:
			return nil, fmt.Errorf("recording the remaining tasks of job %d: %w", id, err)
		}
		known, _ := c.Job(id)
		return known, nil
	}
}

// Forget records in the array that the task is no longer pending, and whether it failed,
// for jobs that depend on the whole array. Call it before the object of a task is
// deleted. It does nothing if the array does not exist.
func Forget(ctx context.Context, c *control.Cluster, task *v1alpha1.BatchJob) error {
	id := task.Spec.Origin.JobID
	unlock, err := c.LockArray(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	b, ok := c.Job(id)
	if !ok || b.Spec.Job.Array == nil {
		return nil
	}
	failed := task.Status.State != v1alpha1.StateCompleted
	if s := b.Status.Array; s != nil && (s.Failed || !failed) &&
		(!array.Whole(b) || !array.Parse(s.Pending).Has(task.Spec.Task.Index)) {
		return nil
	}
	_, err = record(ctx, c, id, func(s *v1alpha1.ArrayStatus) {
		if s.Failed = s.Failed || failed; s.Own == nil {
			s.Pending = array.Rest(b, append(c.SplitOff(id), task)).String()
		}
	})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
