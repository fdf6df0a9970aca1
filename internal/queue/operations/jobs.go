package operations

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/bulkcancel"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// willRequeue reports whether a job that has ended or is ending will return to the
// queue.
func willRequeue(b *v1alpha1.BatchJob) bool {
	requeuing := b.Status.State == v1alpha1.StateCompleting && b.Status.Final == v1alpha1.StatePending
	return requeuing || b.RequeueRequested()
}

// cancel requests the cancellation of a job.
func (s *Service) cancel(ctx context.Context, c *directory.Caller, row *table.Row) error {
	if row.ArrayJobID == row.ID {
		unlock, err := s.Cluster.LockArray(ctx, row.ID) // no task is split off meanwhile
		if err != nil {
			return err
		}
		defer unlock()
	}
	b, err := s.Job(c, row, status.OpCancel)
	switch {
	case err != nil:
		return err
	case b.Status.HasOutcome() && !willRequeue(b):
		return refusal.AlreadyCompleting
	case b.Spec.Cancel != nil:
		return nil
	}
	return s.requestCancel(ctx, b, c.Name)
}

func (s *Service) requestCancel(ctx context.Context, b *v1alpha1.BatchJob, by string) error {
	at := metav1.NewMicroTime(s.Now())
	return s.patchJob(ctx, b, specPatch(map[string]any{"cancel": v1alpha1.CancelRequest{By: by, At: &at}}))
}

// CancelForOwner requests the cancellation of a job in its owner's name, unless that has
// been requested. It returns nil if the job does not exist.
func (s *Service) CancelForOwner(ctx context.Context, jobID int64) error {
	b, ok := s.Cluster.Job(jobID)
	if !ok || b.Spec.Cancel != nil {
		return nil
	}
	return s.requestCancel(ctx, b, b.Spec.User)
}

// cancelInBulk cancels the pending jobs among the targets by one write if there are
// many, and marks them as done.
func (s *Service) cancelInBulk(ctx context.Context, c *directory.Caller, targets []target) {
	if s.BulkCanceller == nil || len(targets) < bulkcancel.MinJobs {
		return
	}
	var jobs []*v1alpha1.BatchJob
	var cancelled []*target
	for i := range targets {
		t := &targets[i]
		if t.row == nil || t.tasks != nil || t.component {
			continue
		}
		b, err := s.Job(c, t.row, status.OpCancel)
		if err == nil && isPlain(b) && change.Pending(b) && b.Spec.Cancel == nil {
			jobs = append(jobs, b)
			cancelled = append(cancelled, t)
		}
	}
	if len(jobs) < bulkcancel.MinJobs || s.BulkCanceller.Cancel(ctx, jobs, c.Name) != nil {
		return
	}
	for _, t := range cancelled {
		t.done = true
	}
}

// isPlain reports whether nothing was or will be split off the job, and its pods
// are its own.
func isPlain(b *v1alpha1.BatchJob) bool {
	return b.Spec.Job.Array == nil && array.HetID(b) == 0 && b.Spec.Origin == nil && b.Spec.Workload == nil
}

// signal returns the action that sends the operation's signal to a job.
func (s *Service) signal(op *status.Operation) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		if endsJobs(op) {
			return s.cancel(ctx, c, row)
		}
		b, err := s.Job(c, row, status.OpSignal)
		switch {
		case err != nil:
			return err
		case change.Pending(b) && op.Signal == sigkill:
			return s.cancel(ctx, c, row) // also with --batch and --full, as in Slurm
		case b.Spec.Workload != nil:
			return refusal.NotSupported
		case isExecuting(b):
			s.send(b, wire.Command{Kind: wire.CommandSignal, Signal: op.Signal, Batch: op.Batch, Full: op.Full})
			return nil
		case b.Status.HasOutcome():
			return refusal.InvalidJobID
		}
		return refusal.NotAlterableNow
	}
}

// isExecuting reports whether the job has processes: it is running or suspended.
func isExecuting(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateRunning || b.Status.State == v1alpha1.StateSuspended
}

// send sends a command to the agent of the job's batch host.
func (s *Service) send(b *v1alpha1.BatchJob, c wire.Command) {
	s.Agents.Send(b.Spec.JobID, b.Status.Attempt, c)
}

// complete returns the action that ends an allocation of srun or salloc: with
// their exit code if the job is running, else by its cancellation.
func (s *Service) complete(exitCode int32) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		b, err := s.Job(c, row, status.OpComplete)
		switch {
		case err != nil:
			return err
		case b.Spec.Job.Batch.Client == "":
			return refusal.Disabled
		case b.Status.State == v1alpha1.StateRunning:
			s.send(b, wire.Command{Kind: wire.CommandComplete, Status: exitCode})
			return nil
		}
		return s.cancel(ctx, c, row)
	}
}

// notify returns the action that writes a line to the standard error of a batch
// job, or of the srun or salloc that the job belongs to.
func (s *Service) notify(message string) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		b, err := s.Job(c, row, status.OpNotify)
		switch {
		case err != nil:
			return err
		case b.Spec.Workload != nil:
			return refusal.NotSupported
		case !isExecuting(b):
			return refusal.Disabled
		}
		if b.Spec.Job.Batch.Client != "" {
			text := strconv.FormatInt(s.Now().UnixNano(), 10) + " " + singleLine(message)
			notes := map[string]any{wire.AnnotationNotice: text}
			return s.patchJob(ctx, b, map[string]any{"metadata": map[string]any{"annotations": notes}})
		}
		s.send(b, wire.Command{Kind: wire.CommandNotify, Text: singleLine(message)})
		return nil
	}
}

// maxMessage bounds the characters of a message to a job and of a node's reason.
const maxMessage = 4096

// singleLine returns text with blanks in place of control characters, so that it
// cannot be mistaken for several messages.
func singleLine(text string) string {
	r := []rune(text)
	for i, c := range r {
		if c < ' ' || c == 0x7f {
			r[i] = ' '
		}
	}
	return string(r[:min(len(r), maxMessage)])
}

// suspend stops the processes of a running job.
func (s *Service) suspend(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return s.setSuspend(ctx, c, row, status.OpSuspend, true)
}

// resume continues the processes of a suspended job.
func (s *Service) resume(ctx context.Context, c *directory.Caller, row *table.Row) error {
	return s.setSuspend(ctx, c, row, status.OpResume, false)
}

func (s *Service) setSuspend(
	ctx context.Context, c *directory.Caller, row *table.Row, verb string, suspend bool,
) error {
	b, err := s.Job(c, row, actionOf(verb))
	switch {
	case err != nil:
		return err
	case change.Pending(b):
		return refusal.JobPending
	case b.Status.HasOutcome():
		return refusal.AlreadyCompleting
	case b.Spec.Workload != nil: // its pods have no agent
		return refusal.NotSupported
	case b.Status.State == v1alpha1.StateConfiguring:
		return refusal.NotAlterableNow
	case !suspend && !b.Spec.Suspend:
		return refusal.NotSuspended
	case suspend == b.Spec.Suspend:
		return nil
	}
	return s.patchJob(ctx, b, specPatch(map[string]any{"suspend": suspend}))
}

// pollInterval is the time between two checks of the state of a job.
const pollInterval = 10 * time.Millisecond

// poll calls done until it returns true; it returns false if ctx ends first.
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// awaitStates returns when the jobs that were suspended or resumed have reached that
// state, as in Slurm, or after StateTimeout, which does not withdraw the request.
func (s *Service) awaitStates(ctx context.Context, targets []target, suspended bool) {
	if s.StateTimeout == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.StateTimeout)
	defer cancel()
	for i := range targets {
		t := &targets[i]
		if t.row == nil || t.err != nil {
			continue
		}
		if !poll(ctx, func() bool { return s.hasReached(t.row.ID, suspended) }) {
			return
		}
	}
}

// shownTimeout bounds how long a request waits until what it has written is shown.
const shownTimeout = 500 * time.Millisecond

// awaitShownCancelled returns when the pending jobs that were cancelled are shown as cancelled, as
// in Slurm, or after a moment: the keeper may be busy, or another replica.
func (s *Service) awaitShownCancelled(ctx context.Context, targets []target, op *status.Operation) {
	if s.StateTimeout == 0 || op.Verb == status.OpSignal && op.Signal != sigkill {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(s.StateTimeout, shownTimeout))
	defer cancel()
	for i := range targets {
		t := &targets[i]
		if t.row == nil || t.err != nil || t.tasks != nil || t.row.State != v1alpha1.StatePending {
			continue
		}
		cancelled := func() bool {
			row := s.Table.Get(t.row.ID)
			return row == nil || row.State != v1alpha1.StatePending
		}
		if !poll(ctx, cancelled) {
			return
		}
	}
}

// hasReached reports whether the job has left the state that suspend or resume
// ends.
func (s *Service) hasReached(id int64, suspended bool) bool {
	row := s.Table.Get(id)
	switch {
	case row == nil:
		return true
	case suspended:
		return row.State != v1alpha1.StateRunning
	}
	return row.State != v1alpha1.StateSuspended
}
