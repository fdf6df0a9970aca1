package keeper

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/tasks"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// keep decides about one job and acts until there is nothing to do now.
func (k *Keeper) keep(ctx context.Context, id int64) error {
	for {
		b, ok := k.Cluster.Job(id)
		if !ok {
			return nil
		}
		f := k.facts(b)
		if b.Status.State != v1alpha1.StateConfiguring || f.Memory.Created && f.allBound() {
			k.started(b)
		}
		a := Decide(f)
		if !a.Wake.IsZero() {
			k.queue.AddAfter(id, a.Wake.Sub(f.Now))
		}
		if a.Kind == Wait {
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

// act carries out a. again tells that the next decision need not wait for an
// event.
func (k *Keeper) act(ctx context.Context, b *v1alpha1.BatchJob, a Action) (again bool, err error) {
	switch a.Kind {
	case Create:
		return true, k.create(ctx, b)
	case Line:
		k.queueStart(b)
		return false, nil
	case End:
		return true, k.end(ctx, b, a.Outcome)
	case Adjust:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { s.TimeLimit = b.Spec.Job.Time.Limit })
		return true, err
	case Warn:
		if k.Commander != nil {
			for _, signal := range []syscall.Signal{syscall.SIGCONT, syscall.SIGTERM} {
				k.Commander.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandSignal, Signal: int32(signal), Full: true})
			}
		}
		k.remember(b, func(m *Memory) { m.Warned = true })
		return true, nil
	case Suspend:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { suspended(s, b.Spec.Suspend, k.Now()) })
		return true, err
	case Terminate:
		if k.Commander != nil {
			k.Commander.Send(b.Spec.JobID, b.Status.Attempt, a.Command)
		}
		k.remember(b, func(m *Memory) { m.Terminated = true })
		return true, nil
	case Sweep:
		return len(a.Kill) == 0, k.sweep(ctx, b, a.Kill)
	case Drop:
		return false, k.deletePods(ctx, a.Kill)
	case Finish, Requeue:
		return true, k.finish(ctx, b)
	case Delete:
		err := k.Cluster.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID})
		return false, client.IgnoreNotFound(err)
	case Release:
		return false, k.release(ctx, b)
	case Components:
		return true, tasks.Components(ctx, k.Cluster, b)
	case Unlink:
		_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) { s.Pods = nil })
		return true, err
	case Record:
		return k.record(ctx, b)
	case Make:
		_, err := k.Cluster.EnsureCreated(ctx, b)
		if apierrors.IsConflict(err) {
			err = errChanged
		}
		return true, err
	case Begin:
		return true, k.begin(ctx, b)
	case Adopt:
		return true, k.adopt(ctx, b)
	case Follow:
		return true, k.follow(ctx, b)
	}
	return false, fmt.Errorf("unknown action %d", a.Kind)
}

// create makes the job's objects. A job of which none can be made fails.
func (k *Keeper) create(ctx context.Context, b *v1alpha1.BatchJob) error {
	k.mu.Lock()
	k.starting.begin(b.Spec.JobID)
	k.mu.Unlock()
	err := k.Starter.Create(ctx, b)
	var hopeless *starter.BuildError
	switch {
	case errors.As(err, &hopeless):
		return k.end(ctx, b, Outcome{Final: v1alpha1.StateFailed, Reason: status.ReasonLaunchFailure,
			Message: hopeless.Error(), Exit: &v1alpha1.ExitCode{Status: 1}})
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return k.end(ctx, b, Outcome{Final: v1alpha1.StatePending, Message: err.Error()})
	case err != nil:
		return err
	}
	k.remember(b, func(m *Memory) { m.Created, m.CreatedAt = true, k.Now() })
	return nil
}

// sweep deletes what runs the attempt: the pods first, because the node is
// waited for, then what they were made by. Nothing is made anew in between: that
// takes pods that have ended, and what would be made is bound to no node.
func (k *Keeper) sweep(ctx context.Context, b *v1alpha1.BatchJob, kill []Kill) error {
	if err := k.deletePods(ctx, kill); err != nil {
		return err
	}
	if err := k.sweepObjects(ctx, b); err != nil {
		return err
	}
	k.remember(b, func(m *Memory) { m.Swept = true })
	return nil
}

func (k *Keeper) deletePods(ctx context.Context, kill []Kill) error {
	for _, x := range kill {
		var opts []client.DeleteOption
		switch {
		case x.Force:
			opts = append(opts, client.GracePeriodSeconds(0))
		case x.Pod.DeletionTimestamp != nil:
			continue
		}
		opts = append(opts, client.Preconditions{UID: &x.Pod.UID})
		if err := k.Cluster.Client.Delete(ctx, x.Pod, opts...); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting pod %s: %w", x.Pod.Name, err)
		}
	}
	return nil
}

// sweepObjects deletes what the starter made for the attempt.
func (k *Keeper) sweepObjects(ctx context.Context, b *v1alpha1.BatchJob) error {
	if b.Spec.Workload != nil {
		return nil // the pods are others'
	}
	meta := metav1.ObjectMeta{Namespace: b.Namespace, Name: kube.Name(host(b).JobID, host(b).Attempt)}
	for _, o := range []client.Object{&jobset.JobSet{ObjectMeta: meta}, &podgroup.PodGroup{ObjectMeta: meta}} {
		err := k.Cluster.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the objects of job %d: %w", b.Spec.JobID, err)
		}
	}
	return nil
}

// release lets a BatchJob that is being deleted go.
func (k *Keeper) release(ctx context.Context, b *v1alpha1.BatchJob) error {
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

// follow cancels what was split off a job that is being deleted.
func (k *Keeper) follow(ctx context.Context, b *v1alpha1.BatchJob) error {
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
