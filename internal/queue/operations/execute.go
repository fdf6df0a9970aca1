package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/queue/tasks"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	maxConcurrent = 16 // jobs that one operation changes at the same time

	sigkill       = 9  // without --batch or --full it ends the job
	highestSignal = 64 // SIGRTMAX
)

// executeOnJobs carries out an operation on jobs and, if it is a cancellation or a
// signal, on the steps that it names.
func (s *Service) executeOnJobs(
	ctx context.Context, c *directory.Caller, op *status.Operation,
) ([]status.OperationStatus, error) {
	act, err := s.actionFor(op)
	if err != nil {
		return nil, err
	}
	if op.Verb == status.OpUpdate {
		if err := s.checkUpdate(ctx, c, op); err != nil {
			return []status.OperationStatus{outcome("", err)}, nil
		}
	}
	signals := op.Verb == status.OpCancel || op.Verb == status.OpSignal
	var steps []status.OperationStatus
	if signals {
		jobs, stepRefs := splitSteps(op.Jobs)
		steps = s.signalSteps(ctx, c, op, stepRefs)
		op.Jobs = jobs
		if len(stepRefs) > 0 && len(jobs) == 0 {
			return steps, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if op.Verb == status.OpTop {
		return s.top(ctx, c, op), nil
	}
	if selects(op) && len(op.Jobs) > 0 {
		act = unknownIfEnded(act)
	}
	targets := s.targets(ctx, c, op)
	if endsJobs(op) {
		s.cancelInBulk(ctx, c, targets)
	}
	s.actOnAll(ctx, c, targets, act, op)
	if op.Verb == status.OpSuspend || op.Verb == status.OpResume {
		s.awaitStates(ctx, targets, op.Verb == status.OpSuspend)
	}
	if signals {
		s.awaitShownCancelled(ctx, targets, op)
		targets = append(targets, s.actOnLatecomers(ctx, c, targets, act, op)...)
	}
	return append(steps, outcomes(targets)...), nil
}

// endsJobs reports whether the operation ends the jobs that it names.
func endsJobs(op *status.Operation) bool {
	return op.Verb == status.OpCancel || op.Verb == status.OpSignal && op.Signal == sigkill && !op.Batch && !op.Full
}

// action carries out an operation on one job.
type action func(ctx context.Context, c *directory.Caller, row *table.Row) error

// actionFor returns the action of the operation's verb. The error is about the
// operation as a whole.
func (s *Service) actionFor(op *status.Operation) (action, error) {
	selectors := [][]string{op.Jobs, op.Users, op.Names, op.Partitions, op.States, op.Accounts, op.QOS,
		op.WCKeys, op.Reservations, op.Nodes}
	if !slices.ContainsFunc(selectors, func(list []string) bool { return len(list) > 0 }) {
		return nil, errors.New("the Operation names no job and no filter")
	}
	if err := bounds.JobRefs.Check(int64(len(op.Jobs))); err != nil {
		return nil, err
	}
	switch op.Verb {
	case status.OpCancel:
		return s.cancel, nil
	case status.OpRequeue:
		return onlyStarted(s.requeue, op), nil
	case status.OpRequeueHold:
		return onlyStarted(s.requeueHold(op), op), nil
	case status.OpHold:
		return s.hold, nil
	case status.OpUHold:
		return s.holdAs(holdUser), nil
	case status.OpRelease:
		return s.release, nil
	case status.OpSuspend:
		return s.suspend, nil
	case status.OpResume:
		return s.resume, nil
	case status.OpTop:
		return nil, nil // see Service.top
	case status.OpNotify:
		return s.notify(op.Message), nil
	case status.OpUpdate:
		return s.update(op.Set), nil
	case status.OpComplete:
		if op.Status < 0 || op.Status > 255 {
			return nil, fmt.Errorf("%d is not an exit code", op.Status)
		}
		return s.complete(op.Status), nil
	case status.OpSignal:
		if op.Signal < 1 || op.Signal > highestSignal {
			return nil, fmt.Errorf("%d is not a signal", op.Signal)
		}
		return s.signal(op), nil
	}
	return nil, fmt.Errorf("%q is not an operation", op.Verb)
}

// onlyStarted returns an action that does nothing to jobs that have ended or never
// started, if the operation requests that (scontrol requeue Incomplete).
func onlyStarted(act action, op *status.Operation) action {
	if op.Set["Incomplete"] == "" {
		return act
	}
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		if row.Final || row.State == v1alpha1.StatePending {
			return nil
		}
		return act(ctx, c, row)
	}
}

// maxUncheckedSettings is the size in bytes of an update's settings up to which
// they are parsed for every caller.
const maxUncheckedSettings = 4 << 10

// checkUpdate refuses settings that no job could have. scontrol refuses them before
// it looks for the jobs; here long settings are parsed only for a caller who may
// change one of the jobs, so that nobody else makes the service parse them.
func (s *Service) checkUpdate(ctx context.Context, c *directory.Caller, op *status.Operation) error {
	if err := s.moveUserID(op); err != nil {
		return err
	}
	size := 0
	for key, v := range op.Set {
		size += len(key) + len(v)
	}
	if size > maxUncheckedSettings && !s.mayUpdateAny(ctx, c, op) {
		return nil
	}
	return change.CheckJobSettings(op.Set, op.Keys, s.Now())
}

func (s *Service) mayUpdateAny(ctx context.Context, c *directory.Caller, op *status.Operation) bool {
	return slices.ContainsFunc(s.targets(ctx, c, op), func(t target) bool {
		if t.row == nil {
			return false
		}
		_, err := s.Job(c, t.row, status.OpUpdate)
		return err == nil
	})
}

// moveUserID moves the setting UserID of an update to the filters: it changes
// nothing, but chooses among jobs of one name.
func (s *Service) moveUserID(op *status.Operation) error {
	const key = "UserID"
	user, ok := op.Set[key]
	if !ok {
		return nil
	}
	if _, err := strconv.ParseUint(user, 10, 32); err != nil && s.Directory.User(user) == nil {
		return refusal.Setting{
			Message: refusal.Text("Invalid " + key + ": " + user),
			Code:    status.CodeInvalidValue, Parameter: key, Value: user,
		}
	}
	delete(op.Set, key)
	if len(op.Set) == 0 {
		return refusal.NoChanges
	}
	if len(op.Names) > 0 {
		op.Users = []string{user}
	}
	return nil
}

// actOnAll carries out the operation on every target that exists and is not done
// yet, several at a time.
func (s *Service) actOnAll(
	ctx context.Context, c *directory.Caller, targets []target, act action, op *status.Operation,
) {
	next := make(chan *target)
	var wg sync.WaitGroup
	for range min(maxConcurrent, len(targets)) {
		wg.Go(func() {
			for t := range next {
				t.err = s.actOn(ctx, c, t, act, op)
			}
		})
	}
	for i := range targets {
		if targets[i].row != nil && !targets[i].done {
			next <- &targets[i]
		}
	}
	close(next)
	wg.Wait()
}

// actOn carries out the operation on one target.
func (s *Service) actOn(ctx context.Context, c *directory.Caller, t *target, act action, op *status.Operation) error {
	if t.tasks != nil {
		return s.actOnTasks(ctx, c, t, act, op)
	}
	if t.component {
		pending := t.row.State == v1alpha1.StatePending
		switch op.Verb {
		case status.OpRequeue, status.OpRequeueHold:
			return refusal.ComponentOperation
		case status.OpCancel, status.OpSignal:
			if pending {
				return refusal.ComponentOperation
			}
		}
	}
	return act(ctx, c, t.row)
}

// actOnTasks carries out the operation on some of the pending tasks that a row
// stands for. Cancelled tasks disappear; for any other operation the tasks become
// jobs of their own.
func (s *Service) actOnTasks(
	ctx context.Context, c *directory.Caller, t *target, act action, op *status.Operation,
) error {
	if _, err := s.Job(c, t.row, authz.Action(op.Verb)); err != nil {
		return err
	}
	switch {
	case endsJobs(op):
		left, err := tasks.Drop(ctx, s.Cluster, t.row.ID, t.tasks)
		if err == nil && left == 0 {
			err = s.cancel(ctx, c, t.row)
		}
		return startedMeanwhile(err)
	case op.Verb == status.OpSignal:
		return refusal.NotAlterableNow
	case op.Verb == status.OpRequeue, op.Verb == status.OpRequeueHold:
		return refusal.JobPending
	}
	split, err := tasks.Split(ctx, s.Cluster, t.row.ID, t.tasks, nil)
	if err != nil {
		return startedMeanwhile(err)
	}
	for _, b := range split {
		s.Table.Refresh(b) // the table may not have it yet
		if row := s.Table.Get(b.Spec.JobID); row != nil {
			err = errors.Join(err, act(ctx, c, row))
		}
	}
	return err
}

// startedMeanwhile returns the refusal for a task that has left its array because
// it started, and other errors as they are.
func startedMeanwhile(err error) error {
	if errors.Is(err, tasks.ErrGone) {
		return refusal.NotAlterableNow
	}
	return err
}

// actOnLatecomers carries out the operation on tasks that were split off while
// their array was being cancelled, and returns them.
func (s *Service) actOnLatecomers(
	ctx context.Context, c *directory.Caller, before []target, act action, op *status.Operation,
) []target {
	if !slices.ContainsFunc(before, func(t target) bool { return t.row != nil && len(t.row.Rest) > 0 }) {
		return nil
	}
	seen := map[int64]bool{}
	for _, t := range before {
		if t.row != nil {
			seen[t.row.ID] = true
		}
	}
	late := slices.DeleteFunc(s.targets(ctx, c, op), func(t target) bool { return t.row == nil || seen[t.row.ID] })
	s.actOnAll(ctx, c, late, act, op)
	return late
}

// splitSteps separates references to steps ("12.0") from those to jobs.
func splitSteps(refs []string) (jobs, steps []string) {
	for _, ref := range refs {
		if strings.Contains(ref, ".") {
			steps = append(steps, ref)
		} else {
			jobs = append(jobs, ref)
		}
	}
	return jobs, steps
}
