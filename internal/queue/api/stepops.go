package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// splitSteps parts the names of steps ("12.0") from those of jobs.
func splitSteps(names []string) (jobs, steps []string) {
	for _, name := range names {
		if strings.Contains(name, ".") {
			steps = append(steps, name)
		} else {
			jobs = append(jobs, name)
		}
	}
	return jobs, steps
}

// errNoStep is of a running job that has no such step.
var errNoStep = fmt.Errorf("no such step: %w", errInvalidID)

// signalSteps cancels or signals single steps.
func (a *API) signalSteps(ctx context.Context, c *directory.Caller, op *status.Operation, names []string) []status.OperationStatus {
	out := make([]status.OperationStatus, 0, len(names))
	for _, name := range names {
		s := status.OperationStatus{Job: name, Error: textInvalidID}
		job, number, _ := strings.Cut(name, ".")
		if id, ok := parseStep(number); ok {
			a.Table.Await(ctx, table.Query{IDs: numbers([]string{job})})
			for _, t := range a.named(ctx, job, 0, nil, op.Verb) {
				if t.row != nil {
					err := a.signalStep(c, t.row, op, id)
					s.Error, s.NoStep = text(err), errors.Is(err, errNoStep)
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// parseStep reads a step's number or name.
func parseStep(number string) (int32, bool) {
	switch number {
	case "batch":
		return wire.StepBatch, true
	case "extern":
		return wire.StepExtern, true
	case "interactive":
		return wire.StepInteractive, true
	}
	n, err := strconv.ParseInt(number, 10, 32)
	return int32(n), err == nil && n >= 0
}

func (a *API) signalStep(c *directory.Caller, row *table.Row, op *status.Operation, id int32) error {
	b, err := a.Operations.jobFor(c, row, authz.Step, authz.Action(op.Verb))
	switch {
	case err != nil:
		return err
	case pending(b):
		return nil // as Slurm has it
	case b.Status.State != v1alpha1.StateRunning && b.Status.State != v1alpha1.StateSuspended:
		return errInvalidID
	case id < 0 && id != wire.StepBatch, !a.Table.HasStep(row, id):
		if op.Verb == status.OpSignal {
			return nil // as Slurm has it
		}
		return errNoStep
	}
	command := wire.Command{Kind: wire.CommandSignal, Signal: sigkill, End: op.Verb != status.OpSignal, By: c.Name}
	if op.Verb == status.OpSignal {
		command.Signal = op.Signal
	}
	if id == wire.StepBatch {
		command.Batch = true
	} else {
		command.Steps = []int32{id}
	}
	a.Operations.Agents.Send(b.Spec.JobID, b.Status.Attempt, command)
	return nil
}

// updateSteps gives steps another time limit: one (12.0), or all of a job (12).
func (a *API) updateSteps(ctx context.Context, c *directory.Caller, op *status.Operation) []status.OperationStatus {
	limit, err := change.StepLimit(op.Set)
	if err != nil {
		return []status.OperationStatus{{Error: text(err)}}
	}
	out := make([]status.OperationStatus, 0, len(op.Targets))
	for _, name := range op.Targets {
		out = append(out, status.OperationStatus{Job: name, Error: text(a.limitSteps(ctx, c, name, limit))})
	}
	return out
}

// limitSteps changes the limit of the steps that name means.
func (a *API) limitSteps(ctx context.Context, c *directory.Caller, name string, limit func(int32) (int32, error)) error {
	job, number, one := strings.Cut(name, ".")
	id, ok := parseStep(number)
	if one && ok && id < 0 {
		return errNotSupported // the script has the job's limit
	}
	if one && !ok {
		return errInvalidID
	}
	a.Table.Await(ctx, table.Query{IDs: numbers([]string{job})})
	targets := a.named(ctx, job, 0, nil, status.OpUpdate)
	if len(targets) != 1 || targets[0].row == nil {
		return errInvalidID
	}
	b, err := a.Operations.jobFor(c, targets[0].row, authz.Step, authz.Update)
	if err != nil {
		return err
	}
	found := false
	for _, s := range a.Table.Steps(ctx, table.Query{IDs: []int64{b.Spec.JobID}}) {
		if s.Number < 0 || one && s.Number != int64(id) {
			continue
		}
		minutes, err := limit(s.TimeLimit)
		if err != nil {
			return err
		}
		found = true
		a.Operations.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandLimit, Steps: []int32{int32(s.Number)}, Minutes: minutes})
	}
	if !found {
		return errInvalidID
	}
	return nil
}
