package operations

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// The kinds of hold that users and operators place on a job.
const (
	holdUser  = "user"
	holdAdmin = "admin"
)

// actionOf returns the action of package authz for the verb of an operation.
func actionOf(verb string) authz.Action { return authz.Action(verb) }

// mayReleaseAdmin reports whether the caller may release an operator's hold.
func (s *Service) mayReleaseAdmin(c *directory.Caller, b *v1alpha1.BatchJob) bool {
	return s.Permit(c, b, authz.Job, authz.Free) == nil
}

// requeue raises spec.requeues by one. Two callers at the same time raise it only
// once, because the patch is for the version of the object that was read.
func (s *Service) requeue(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return s.retryOnConflict(ctx, row, func() error {
		b, err := s.requeueableJob(ctx, c, row, status.OpRequeue)
		if err != nil {
			return err
		}
		if b.RequeueRequested() { // it has been requested
			return nil
		}
		return s.patchJob(ctx, b, guardedSpecPatch(b, requeueRequest(b)))
	})
}

// requeueHold returns the action that puts a job back into the queue and holds it;
// with State=SpecialExit in the operation in the state SPECIAL_EXIT.
func (s *Service) requeueHold(op *status.Operation) action {
	special := strings.HasPrefix(strings.ToUpper(op.Set["State"]), "SPECIALEXIT")
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		return s.retryOnConflict(ctx, row, func() error {
			b, err := s.requeueableJob(ctx, c, row, status.OpRequeueHold)
			if err != nil {
				return err
			}
			hold := job.HoldRequeue
			switch {
			case b.Spec.Job.Hold == holdAdmin && !s.mayReleaseAdmin(c, b):
				hold = holdAdmin // the owner could release any other
			case special:
				hold = job.HoldSpecial
			}
			spec := requeueRequest(b)
			spec["job"] = map[string]any{"hold": hold}
			return s.patchJob(ctx, b, guardedSpecPatch(b, spec))
		})
	}
}

// requeueRequest returns the patch of a spec that requests a requeue. Whether the
// job was cancelled or suspended in its last run does not matter to the next.
func requeueRequest(b *v1alpha1.BatchJob) map[string]any {
	spec := map[string]any{"requeues": b.Spec.Requeues + 1, "suspend": nil}
	if !change.Live(b) {
		spec["cancel"] = nil
	}
	return spec
}

// requeueableJob returns the row's BatchJob if the caller may put it back into the
// queue.
func (s *Service) requeueableJob(
	ctx context.Context, c *directory.Caller, row *table.Row, verb string,
) (*v1alpha1.BatchJob, error) {
	b, err := s.Job(c, row, actionOf(verb))
	switch {
	case err != nil:
		return nil, err
	case change.Pending(b) && b.Spec.Cancel != nil: // it ends as soon as the keeper records that
		return nil, s.awaitCancelled(ctx, b)
	case change.Pending(b):
		return nil, refusal.JobPending
	case b.Status.State == v1alpha1.StateCompleting, change.Live(b) && b.Spec.Cancel != nil:
		return nil, refusal.AlreadyCompleting
	case b.IsFinal() && s.Cluster.Jobs.IsAssumed(b):
		return nil, s.writeStatus(ctx, b)
	case !s.Directory.Requeueable(&b.Spec.Job):
		return nil, refusal.Disabled
	}
	return b, nil
}

// awaitCancelled returns when a pending job that is being cancelled has ended, or
// after a while. The error makes the caller read the job again.
func (s *Service) awaitCancelled(ctx context.Context, b *v1alpha1.BatchJob) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	poll(ctx, func() bool {
		now, ok := s.Cluster.Job(b.Spec.JobID)
		return !ok || !change.Pending(now) || now.Spec.Cancel == nil
	})
	return refusal.NotAlterableNow
}

// writeStatus writes the final status of a job to its object, which the keeper
// would do later. The error makes the caller read the job again.
func (s *Service) writeStatus(ctx context.Context, b *v1alpha1.BatchJob) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := s.Cluster.WriteStatus(ctx, b, s.Now(), func(*v1alpha1.BatchJobStatus) {})
	if err != nil && !apierrors.IsConflict(err) {
		return err
	}
	return refusal.NotAlterableNow
}

// hold keeps a pending job from starting. A user cannot release the hold of an
// operator.
func (s *Service) hold(ctx context.Context, c *directory.Caller, row *table.Row) error {
	kind := holdUser
	if c.Operator {
		kind = holdAdmin
	}
	return s.holdAs(kind)(ctx, c, row)
}

// holdAs returns the action that places a hold of the given kind on a job. Only
// operators replace an operator's hold by a user's.
func (s *Service) holdAs(kind string) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		b, err := s.holdableJob(c, row, status.OpHold)
		if err != nil {
			return err
		}
		if b.Spec.Job.Hold == kind || b.Spec.Job.Hold == holdAdmin && !s.mayReleaseAdmin(c, b) {
			return nil
		}
		return s.setHold(ctx, b, kind)
	}
}

// release releases the hold of a job.
func (s *Service) release(ctx context.Context, c *directory.Caller, row *table.Row) error {
	b, err := s.holdableJob(c, row, status.OpRelease)
	switch {
	case err != nil:
		return err
	case b.Spec.Job.Hold == "":
		return nil
	case b.Spec.Job.Hold == holdAdmin && !s.mayReleaseAdmin(c, b):
		return refusal.AccessDenied
	}
	return s.setHold(ctx, b, nil)
}

func (s *Service) setHold(ctx context.Context, b *v1alpha1.BatchJob, kind any) error {
	return s.patchJob(ctx, b, specPatch(map[string]any{"job": map[string]any{"hold": kind}}))
}

// holdableJob returns the row's BatchJob if the caller may do that to it and it has
// not ended. A running job is held when it returns to the queue.
func (s *Service) holdableJob(c *directory.Caller, row *table.Row, verb string) (*v1alpha1.BatchJob, error) {
	b, err := s.Job(c, row, actionOf(verb))
	switch {
	case err != nil:
		return nil, err
	case b.Status.HasOutcome():
		return nil, refusal.JobFinished
	}
	return b, nil
}
