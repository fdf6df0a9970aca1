package operations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// errNoStep is the outcome for a step that a running job does not have.
var errNoStep = fmt.Errorf("no such step: %w", refusal.InvalidJobID)

// parseStepID parses the part of a step's name after the dot.
func parseStepID(text string) (id int32, ok bool) {
	switch text {
	case "batch":
		return wire.StepBatch, true
	case "extern":
		return wire.StepExtern, true
	case "interactive":
		return wire.StepInteractive, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0
}

// signalSteps cancels or signals single steps.
func (s *Service) signalSteps(
	ctx context.Context, c *directory.Caller, op *status.Operation, steps []string,
) []status.OperationStatus {
	out := make([]status.OperationStatus, 0, len(steps))
	for _, step := range steps {
		err := s.signalStep(ctx, c, op, step)
		o := outcome(step, err)
		o.NoStep = errors.Is(err, errNoStep)
		out = append(out, o)
	}
	return out
}

// signalStep cancels or signals one step of every job that its name refers to. The error
// is that of the last job.
func (s *Service) signalStep(ctx context.Context, c *directory.Caller, op *status.Operation, step string) error {
	job, number, _ := strings.Cut(step, ".")
	id, ok := parseStepID(number)
	if !ok {
		return refusal.InvalidJobID
	}
	s.Table.Await(ctx, table.Query{IDs: query.IDs([]string{job})})
	err := error(refusal.InvalidJobID)
	for _, t := range s.targetsOf(ctx, c, job, 0, nil, op.Verb) {
		if t.row != nil {
			err = s.signalStepOf(c, t.row, op, id)
		}
	}
	return err
}

// signalStepOf sends the agent of a job the command for one of its steps. As in
// Slurm, a pending job has no step to signal, and that is no error; only scancel
// without a signal reports a step that does not exist.
func (s *Service) signalStepOf(c *directory.Caller, row *table.Row, op *status.Operation, id int32) error {
	b, err := s.jobFor(c, row, authz.Step, actionOf(op.Verb))
	switch {
	case err != nil:
		return err
	case change.Pending(b):
		return nil
	case !isExecuting(b):
		return refusal.InvalidJobID
	case id < 0 && id != wire.StepBatch, !s.Table.HasStep(row, id):
		if op.Verb == status.OpSignal {
			return nil
		}
		return errNoStep
	}
	command := wire.Command{Kind: wire.CommandSignal, Signal: sigkill, End: true, By: c.Name}
	if op.Verb == status.OpSignal {
		command.Signal, command.End = op.Signal, false
	}
	if id == wire.StepBatch {
		command.Batch = true
	} else {
		command.Steps = []int32{id}
	}
	s.send(b, command)
	return nil
}

// updateSteps changes the time limit of steps: of one (12.0), or of all steps of a
// job (12).
func (s *Service) updateSteps(ctx context.Context, c *directory.Caller, op *status.Operation) []status.OperationStatus {
	limit, err := change.StepLimit(op.Set)
	if err != nil {
		return []status.OperationStatus{outcome("", err)}
	}
	out := make([]status.OperationStatus, 0, len(op.Targets))
	for _, name := range op.Targets {
		out = append(out, outcome(name, s.limitSteps(ctx, c, name, limit)))
	}
	return out
}

// limitSteps changes the time limit of the steps that name refers to.
func (s *Service) limitSteps(ctx context.Context, c *directory.Caller, name string, limit change.LimitFunc) error {
	job, number, single := strings.Cut(name, ".")
	id, ok := parseStepID(number)
	switch {
	case single && !ok:
		return refusal.InvalidJobID
	case single && id < 0: // the batch step has the time limit of the job
		return refusal.NotSupported
	}
	s.Table.Await(ctx, table.Query{IDs: query.IDs([]string{job})})
	targets := s.targetsOf(ctx, c, job, 0, nil, status.OpUpdate)
	if len(targets) != 1 || targets[0].row == nil {
		return refusal.InvalidJobID
	}
	b, err := s.jobFor(c, targets[0].row, authz.Step, authz.Update)
	if err != nil {
		return err
	}
	found := false
	for _, step := range s.Table.Steps(ctx, table.Query{IDs: []int64{b.Spec.JobID}}) {
		if step.Number < 0 || single && step.Number != int64(id) {
			continue
		}
		minutes, err := limit(step.TimeLimit)
		if err != nil {
			return err
		}
		found = true
		s.send(b, wire.Command{Kind: wire.CommandLimit, Steps: []int32{int32(step.Number)}, Minutes: minutes})
	}
	if !found {
		return refusal.InvalidJobID
	}
	return nil
}
