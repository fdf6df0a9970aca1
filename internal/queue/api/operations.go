package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Sender hands a command to the agent of a job's batch host.
type Sender interface {
	Send(jobID int64, attempt int32, c wire.Command)
}

// Operations change jobs on behalf of callers: with the scheduler's identity,
// after their own rights were checked here. Safe for concurrent use.
type Operations struct {
	Cluster   *control.Cluster
	Directory *directory.Directory
	Agents    Sender
	Now       func() time.Time
	// Judge tells whether the job, as its user would submit it now, could be
	// in the queue, or an operator would have it there; nil: it could.
	Judge func(b *v1alpha1.BatchJob, operator bool) error
	// Within refuses what a change makes larger than it may be (package bounds);
	// nil: nothing is.
	Within func(old, now *v1alpha1.BatchJob, c *directory.Caller) error
	Table  *table.Table
	Pool   Pool
	// Settle is how long suspend and resume wait until the jobs' states show
	// it; 0: not at all.
	Settle time.Duration
	// Cancels takes the cancellation of many jobs; nil: each is written by
	// itself.
	Cancels Cancels
}

// Cancels has many pending jobs cancelled by one write.
type Cancels interface {
	Add(ctx context.Context, jobs []*v1alpha1.BatchJob, by string) error
}

// sigkill without --batch or --full means the end of the job.
const sigkill = 9

// refusal returns why the caller may not do that to the job or its steps, or nil.
func (o *Operations) refusal(c *directory.Caller, b *v1alpha1.BatchJob, object authz.Object, action authz.Action) error {
	if text := o.Directory.Refusal(o.Directory.RolesOnJob(c, b), object, action); text != "" {
		return Refused(text)
	}
	return nil
}

// job returns the row's BatchJob, if the caller may do that to it.
func (o *Operations) job(c *directory.Caller, row *table.Row, action authz.Action) (*v1alpha1.BatchJob, error) {
	return o.jobFor(c, row, authz.Job, action)
}

func (o *Operations) jobFor(c *directory.Caller, row *table.Row, object authz.Object, action authz.Action) (*v1alpha1.BatchJob, error) {
	b, ok := o.Cluster.Job(row.ID)
	if !ok {
		return nil, errInvalidID
	}
	if err := o.refusal(c, b, object, action); err != nil {
		return nil, err
	}
	return b, nil
}

// mayFree reports whether the caller may release an operator's hold.
func (o *Operations) mayFree(c *directory.Caller, b *v1alpha1.BatchJob) bool {
	return o.refusal(c, b, authz.Job, authz.Free) == nil
}

func pending(b *v1alpha1.BatchJob) bool { return change.Pending(b) }

// live tells whether the job holds nodes and is not ending.
func live(b *v1alpha1.BatchJob) bool { return change.Live(b) }

// returns tells whether the job is ending, or over, but will be back in the queue.
func returns(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateCompleting && b.Status.Final == v1alpha1.StatePending || b.Spec.Requeues > b.Status.Requeues
}

func (o *Operations) cancel(ctx context.Context, c *directory.Caller, row *table.Row) error {
	if row.ArrayJobID == row.ID {
		defer o.Cluster.LockArray(row.ID)() // no task is split off meanwhile
	}
	b, err := o.job(c, row, status.OpCancel)
	switch {
	case err != nil:
		return err
	case final(b) && !returns(b):
		return errDone
	case b.Spec.Cancel != nil:
		return nil
	}
	at := metav1.NewMicroTime(o.Now())
	return o.patch(ctx, b, map[string]any{"spec": map[string]any{"cancel": v1alpha1.CancelRequest{By: c.Name, At: &at}}})
}

func (o *Operations) signal(ctx context.Context, c *directory.Caller, row *table.Row, op *status.Operation) error {
	if op.Signal == sigkill && !op.Batch && !op.Full {
		return o.cancel(ctx, c, row)
	}
	b, err := o.job(c, row, status.OpSignal)
	switch {
	case err != nil:
		return err
	case b.Spec.Workload != nil:
		return errNotSupported
	case b.Status.State == v1alpha1.StateRunning || b.Status.State == v1alpha1.StateSuspended:
		o.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandSignal, Signal: op.Signal, Batch: op.Batch, Full: op.Full})
		return nil
	case pending(b) || live(b):
		return errNotNow
	}
	return errDone
}

// complete ends an allocation of srun or salloc: with their exit code if it
// runs, else for good.
func (o *Operations) complete(ctx context.Context, c *directory.Caller, row *table.Row, code int32) error {
	b, err := o.job(c, row, status.OpComplete)
	switch {
	case err != nil:
		return err
	case b.Spec.Job.Batch.Client == "":
		return errDisabled
	case b.Status.State == v1alpha1.StateRunning:
		o.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandComplete, Status: code})
		return nil
	}
	return o.cancel(ctx, c, row)
}

// requeue raises spec.requeues by one. The object's version makes sure that
// two callers raise it once; when somebody else wrote, it is tried again.
func (o *Operations) requeue(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return o.again(ctx, row, func() error {
		b, err := o.begun(ctx, c, row, status.OpRequeue)
		if err != nil || b.Spec.Requeues > b.Status.Requeues { // or asked for already
			return err
		}
		return o.patch(ctx, b, map[string]any{
			"metadata": map[string]any{"resourceVersion": b.ResourceVersion},
			"spec":     requeued(b),
		})
	})
}

// begun is the row's BatchJob if the caller may put it back into the queue.
func (o *Operations) begun(ctx context.Context, c *directory.Caller, row *table.Row, action authz.Action) (*v1alpha1.BatchJob, error) {
	b, err := o.job(c, row, action)
	switch {
	case err != nil:
		return nil, err
	case pending(b) && b.Spec.Cancel != nil: // it is over, but for the keeper's word
		return nil, o.awaitEnd(ctx, b)
	case pending(b):
		return nil, errPending
	case b.Status.State == v1alpha1.StateCompleting, live(b) && b.Spec.Cancel != nil:
		return nil, errDone
	case final(b) && b.Status.Unwritten:
		return nil, o.record(ctx, b)
	case !o.requeueable(b):
		return nil, errDisabled
	}
	return b, nil
}

// awaitEnd returns when a job that is cancelled while it waits is over, or the
// keeper takes long. The answer is that the job has changed.
func (o *Operations) awaitEnd(ctx context.Context, b *v1alpha1.BatchJob) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		now, ok := o.Cluster.Job(b.Spec.JobID)
		if !ok || !pending(now) || now.Spec.Cancel == nil {
			return errNotNow
		}
		select {
		case <-ctx.Done():
			return errNotNow
		case <-tick.C:
		}
	}
}

// record gives the object of a job that is over the status that it has but in
// memory, which the keeper would do in its time. The answer is that the job
// has changed.
func (o *Operations) record(ctx context.Context, b *v1alpha1.BatchJob) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := o.Cluster.WriteStatus(ctx, b, b.DeepCopy()); err != nil && !apierrors.IsConflict(err) {
		return err
	}
	return errNotNow
}

// requeued is what asks for a requeue. That the job was cancelled or stopped
// in its last run says nothing about the next.
func requeued(b *v1alpha1.BatchJob) map[string]any {
	spec := map[string]any{"requeues": b.Spec.Requeues + 1, "suspend": nil}
	if !live(b) {
		spec["cancel"] = nil
	}
	return spec
}

func (o *Operations) requeueable(b *v1alpha1.BatchJob) bool {
	if r := b.Spec.Job.Batch.Requeue; r != nil {
		return *r
	}
	def := o.Directory.Parameters().JobRequeue
	return def == nil || *def
}

// hold keeps a pending job from starting: an operator's hold cannot be
// released by the user.
func (o *Operations) hold(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return o.holdAs(holdOf(c))(ctx, c, row)
}

func holdOf(c *directory.Caller) string {
	if c.Operator {
		return "admin"
	}
	return "user"
}

// holdAs makes the hold of one kind. A user's hold in place of an operator's
// is for operators only.
func (o *Operations) holdAs(kind string) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		b, err := o.changeable(c, row, status.OpHold)
		if errors.Is(err, errNotPending) { // it runs on, and is held when it comes back to the queue
			b, err = o.job(c, row, status.OpHold)
		}
		if err != nil {
			return err
		}
		if b.Spec.Job.Hold == kind || b.Spec.Job.Hold == "admin" && !o.mayFree(c, b) {
			return nil
		}
		return o.patch(ctx, b, map[string]any{"spec": map[string]any{"job": map[string]any{"hold": kind}}})
	}
}

func (o *Operations) release(ctx context.Context, c *directory.Caller, row *table.Row) error {
	b, err := o.changeable(c, row, status.OpRelease)
	if errors.Is(err, errNotPending) { // it was held while it runs
		b, err = o.job(c, row, status.OpRelease)
	}
	switch {
	case err != nil:
		return err
	case b.Spec.Job.Hold == "":
		return nil
	case b.Spec.Job.Hold == "admin" && !o.mayFree(c, b):
		return errDenied
	}
	return o.patch(ctx, b, map[string]any{"spec": map[string]any{"job": map[string]any{"hold": nil}}})
}

// changeable returns the row's BatchJob if it is pending and the caller may do
// that to it.
func (o *Operations) changeable(c *directory.Caller, row *table.Row, action authz.Action) (*v1alpha1.BatchJob, error) {
	b, err := o.job(c, row, action)
	switch {
	case err != nil:
		return nil, err
	case live(b):
		return nil, errNotPending
	case !pending(b):
		return nil, errFinishedHold
	}
	return b, nil
}

// made is the job with an object, which that of a single pod may lack for a
// moment.
func (o *Operations) made(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b, err := o.Cluster.Make(ctx, b)
	if apierrors.IsConflict(err) {
		return nil, errNotNow
	}
	return b, err
}

// patch merges change into the BatchJob and takes the result into the store.
// The object's UID guards against one that was made anew under its name.
func (o *Operations) patch(ctx context.Context, b *v1alpha1.BatchJob, change map[string]any) error {
	b, err := o.made(ctx, b)
	if err != nil {
		return err
	}
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	if meta["resourceVersion"] == "" { // it had no object
		meta["resourceVersion"] = b.ResourceVersion
	}
	meta["uid"] = b.UID
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	obj := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}}
	err = o.Cluster.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(wire.FieldManager))
	if apierrors.IsConflict(err) {
		return errNotNow
	}
	if err != nil {
		return err
	}
	o.Cluster.ApplyJob(obj)
	return nil
}
