package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/tasks"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// reconcile decides about one job and acts until there is nothing to do.
func (k *Keeper) reconcile(ctx context.Context, id int64) error {
	for {
		b, ok := k.Cluster.Job(id)
		if !ok {
			return nil
		}
		f := k.facts(b)
		if b.Status.State != v1alpha1.StateConfiguring || f.Progress.Created && f.AllBound() {
			k.startDone(b)
		}
		a := decide.Next(f)
		if !a.Wake.IsZero() {
			k.queue.AddAfter(id, a.Wake.Sub(f.Now))
		}
		if due := k.nextLost(b); !due.IsZero() {
			k.queue.AddAfter(id, due.Sub(f.Now))
		}
		if a.Kind == decide.Wait {
			return nil
		}
		k.Log.Debug("keeper", "job", id, "state", b.Status.State, "action", a.Kind, "final", a.Outcome.Final)
		again, err := k.act(ctx, b, a)
		if errors.Is(err, errChanged) {
			continue // the store has the newer job by now
		}
		if err != nil || !again {
			return err
		}
	}
}

// act performs a. again reports that the next decision need not wait for an event.
func (k *Keeper) act(ctx context.Context, b *v1alpha1.BatchJob, a decide.Action) (again bool, err error) {
	switch a.Kind {
	case decide.Create:
		return true, k.create(ctx, b)
	case decide.WaitStart:
		k.awaitStart(b)
		return false, nil
	case decide.End:
		if newer, err := k.readWorkload(ctx, b, a.Outcome); newer || err != nil {
			return true, err
		}
		return true, k.end(ctx, b, a.Outcome)
	case decide.UpdateLimit:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) {
			s.TimeLimit, s.ShortenedFrom = b.Spec.Job.Time.Limit, 0
		})
		return true, err
	case decide.WarnPreempted:
		if k.Commander != nil {
			for _, signal := range []syscall.Signal{syscall.SIGCONT, syscall.SIGTERM} {
				k.Commander.Send(b.Spec.JobID, b.Status.Attempt,
					wire.Command{Kind: wire.CommandSignal, Signal: int32(signal), Full: true})
			}
		}
		k.noteProgress(b, func(m *decide.Progress) { m.Warned = true })
		return true, nil
	case decide.WarnRemoval:
		if k.Commander != nil {
			t := &b.Spec.Job.Time
			k.Commander.Send(b.Spec.JobID, b.Status.Attempt,
				wire.Command{Kind: wire.CommandSignal, Signal: t.Signal, Batch: t.SignalBatch})
		}
		k.noteProgress(b, func(m *decide.Progress) { m.RemovalWarned = true })
		return true, nil
	case decide.Suspend:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { decide.SetSuspended(s, b.Spec.Suspend, k.Now()) })
		return true, err
	case decide.Terminate:
		if k.Commander != nil {
			k.Commander.Send(b.Spec.JobID, b.Status.Attempt, a.Command)
		}
		k.noteProgress(b, func(m *decide.Progress) { m.Terminated = true })
		return true, nil
	case decide.CleanUp:
		return len(a.Deletions) == 0, k.cleanUp(ctx, b, a.Deletions)
	case decide.ReadPods:
		return true, k.readPods(ctx, b)
	case decide.DeletePods:
		return false, k.deletePods(ctx, a.Deletions)
	case decide.Finish, decide.Requeue:
		return true, k.finish(ctx, b)
	case decide.Delete:
		err := k.Cluster.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID})
		return false, client.IgnoreNotFound(err)
	case decide.RemoveFinalizer:
		return false, k.removeFinalizer(ctx, b)
	case decide.SplitComponents:
		return true, tasks.Components(ctx, k.Cluster, b)
	case decide.ClearPods:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { s.Pods = nil })
		return true, err
	case decide.WriteAssumed:
		return k.writeAssumed(ctx, b)
	case decide.CreateObject:
		_, err := k.Cluster.EnsureCreated(ctx, b)
		if apierrors.IsConflict(err) {
			err = errChanged
		}
		return true, err
	case decide.MarkRunning:
		if changed, err := k.nameObjects(ctx, b); changed || err != nil {
			return true, err
		}
		return true, k.markRunning(ctx, b)
	case decide.Adopt:
		return true, k.adopt(ctx, b)
	case decide.CancelParts:
		return true, k.cancelParts(ctx, b)
	}
	return false, fmt.Errorf("unknown action %d", a.Kind)
}

// create creates the job's objects. A job whose objects cannot be built fails.
func (k *Keeper) create(ctx context.Context, b *v1alpha1.BatchJob) error {
	if changed, err := k.nameObjects(ctx, b); changed || err != nil {
		return err
	}
	k.mu.Lock()
	k.throttle.begin(b.Spec.JobID)
	k.mu.Unlock()
	err := k.Starter.Create(ctx, b)
	var unbuildable *starter.BuildError
	switch {
	case errors.As(err, &unbuildable):
		return k.end(ctx, b, decide.Outcome{Final: v1alpha1.StateFailed, Reason: status.ReasonLaunchFailure,
			Message: unbuildable.Error(), Exit: &v1alpha1.ExitCode{Status: 1}})
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return k.end(ctx, b, decide.Outcome{Final: v1alpha1.StatePending, Message: err.Error()})
	case err != nil:
		return err
	}
	k.noteProgress(b, func(m *decide.Progress) { m.Created, m.CreatedAt = true, k.Now() })
	return nil
}

// cleanUp deletes the pods of the attempt and then the objects that own them, because the
// deletion of pods waits for the node. Controllers do not replace the pods in between:
// they do so only when pods have ended, and new pods would not be bound.
func (k *Keeper) cleanUp(ctx context.Context, b *v1alpha1.BatchJob, kill []decide.PodDeletion) error {
	if err := k.deletePods(ctx, kill); err != nil {
		return err
	}
	if err := k.deleteObjects(ctx, b); err != nil {
		return err
	}
	k.noteProgress(b, func(m *decide.Progress) { m.CleanedUp = true })
	return nil
}

// readPods reads the pods of the job from the API server into the store, and removes those that
// do not exist from it.
func (k *Keeper) readPods(ctx context.Context, b *v1alpha1.BatchJob) error {
	h := b.RunsIn()
	known := k.Cluster.JobPods(h.JobID)
	var list corev1.PodList
	err := k.Cluster.Client.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabels{
		wire.LabelJobID: strconv.FormatInt(h.JobID, 10),
	})
	if err != nil {
		return fmt.Errorf("reading the pods of job %d: %w", b.Spec.JobID, err)
	}
	exists := map[types.UID]bool{}
	for i := range list.Items {
		exists[list.Items[i].UID] = true
		list.Items[i].ManagedFields = nil
		k.Cluster.Pods.ApplyRead(&list.Items[i])
	}
	for _, p := range known {
		if !exists[p.UID] {
			k.Cluster.Pods.Remove(p, k.Now())
		}
	}
	k.noteProgress(b, func(m *decide.Progress) { m.PodsRead, m.PodsReadAt = true, k.Now() })
	return nil
}

// readWorkload reads the pods of a placed workload that are not bound, as far as is known, before
// the job returns to the queue: its pods would be deleted, and nobody creates some of them again.
// newer reports that one is bound, which the store knows now.
func (k *Keeper) readWorkload(ctx context.Context, b *v1alpha1.BatchJob, o decide.Outcome) (newer bool, err error) {
	if b.Spec.Workload == nil || b.Status.State != v1alpha1.StateConfiguring || o.Final != v1alpha1.StatePending {
		return false, nil
	}
	for _, known := range k.pods(b) {
		if known.Spec.NodeName != "" {
			continue
		}
		p := &corev1.Pod{}
		err := k.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(known), p)
		if apierrors.IsNotFound(err) || err == nil && (p.UID != known.UID || p.Spec.NodeName == "") {
			continue // gone, also if another pod has its name now
		}
		if err != nil {
			return false, fmt.Errorf("reading the pods of job %d: %w", b.Spec.JobID, err)
		}
		p.ManagedFields = nil
		k.Cluster.Pods.ApplyRead(p)
		newer = true
	}
	return newer, nil
}

// deletePods deletes the pods, in the order of their names, unless they are being deleted
// already.
func (k *Keeper) deletePods(ctx context.Context, kill []decide.PodDeletion) error {
	slices.SortFunc(kill, func(a, b decide.PodDeletion) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	for _, x := range kill {
		var opts []client.DeleteOption
		switch {
		case x.Force:
			opts = append(opts, client.GracePeriodSeconds(0))
		case x.Pod.DeletionTimestamp != nil:
			continue
		}
		opts = append(opts, client.Preconditions{UID: &x.Pod.UID})
		if err := k.Cluster.Client.Delete(ctx, x.Pod, opts...); client.IgnoreNotFound(err) != nil &&
			!apierrors.IsConflict(err) {
			return fmt.Errorf("deleting pod %s: %w", x.Pod.Name, err)
		}
	}
	return nil
}

// deleteObjects deletes the objects that the starter created for the attempt.
func (k *Keeper) deleteObjects(ctx context.Context, b *v1alpha1.BatchJob) error {
	if b.Spec.Workload != nil {
		return nil // the pods belong to others
	}
	meta := metav1.ObjectMeta{Namespace: b.Namespace, Name: kube.Name(b.RunsIn().JobID, b.RunsIn().Attempt)}
	for _, o := range []client.Object{&jobset.JobSet{ObjectMeta: meta}, &podgroup.PodGroup{ObjectMeta: meta}} {
		err := k.Cluster.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the objects of job %d: %w", b.Spec.JobID, err)
		}
	}
	return nil
}

// removeFinalizer lets the API server delete a BatchJob that is being deleted.
func (k *Keeper) removeFinalizer(ctx context.Context, b *v1alpha1.BatchJob) error {
	n := b.DeepCopy()
	if !controllerutil.RemoveFinalizer(n, wire.Finalizer) {
		return nil
	}
	if b.Spec.Task != nil && b.Spec.Origin != nil {
		if err := tasks.Forget(ctx, k.Cluster, b); err != nil {
			return err
		}
	}
	patch := client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{})
	err := k.Cluster.Client.Patch(ctx, n, patch)
	if apierrors.IsConflict(err) {
		return k.refresh(ctx, b)
	}
	return client.IgnoreNotFound(err)
}

// cancelParts cancels the jobs that were split off a job that is being deleted.
func (k *Keeper) cancelParts(ctx context.Context, b *v1alpha1.BatchJob) error {
	by := v1alpha1.CancelRequest{By: b.Spec.User, At: ptr(metav1.NewMicroTime(k.Now()))}
	if b.Spec.Cancel != nil {
		by = *b.Spec.Cancel
	}
	for _, t := range k.Cluster.SplitOff(b.Spec.JobID) {
		if t.Spec.Cancel != nil || t.IsFinal() {
			continue
		}
		n := t.DeepCopy()
		n.Spec.Cancel = &by
		if err := k.Cluster.Client.Patch(ctx, n, client.MergeFrom(t)); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("cancelling job %d: %w", t.Spec.JobID, err)
		}
		k.Cluster.ApplyJob(n)
	}
	return nil
}

func ptr[T any](v T) *T { return &v }
