package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	maxOperation = 4 << 20 // bytes
	maxNamed     = 100000  // entries of Operation.Jobs
	workers      = 16      // jobs that are changed at the same time

	// operationTime bounds one request, which the API server gives up after a
	// minute: what is not done by then is answered status.NotInTime, for the
	// client to ask again.
	operationTime = 40 * time.Second
)

// operate answers POST operations.
func (a *API) operate(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var op status.Operation
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOperation)).Decode(&op); err != nil {
		refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, "the Operation cannot be read: "+err.Error())
		return
	}
	act, err := a.Operations.verb(&op)
	if err != nil {
		refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if op.Entity == status.EntityStep && op.Verb == status.OpUpdate {
		a.list(w, r, &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion(), Items: a.updateSteps(r.Context(), c, &op)})
		return
	}
	if op.Entity != "" && op.Entity != status.EntityJob {
		a.list(w, r, &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion(), Items: a.Operations.entity(r.Context(), c, &op)})
		return
	}
	if op.Verb == status.OpUpdate {
		err := a.userOfJobs(&op)
		if err == nil && a.parsesSettings(r.Context(), &op, c) {
			err = change.JobForm(op.Set, a.Operations.Now())
		}
		if err != nil {
			a.list(w, r, &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion(), Items: []status.OperationStatus{{Error: text(err)}}})
			return
		}
	}
	var steps []status.OperationStatus
	if op.Verb == status.OpCancel || op.Verb == status.OpSignal {
		jobs, named := splitSteps(op.Jobs)
		steps = a.signalSteps(r.Context(), c, &op, named)
		if op.Jobs = jobs; len(named) > 0 && len(jobs) == 0 {
			a.list(w, r, &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion(), Items: steps})
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), operationTime)
	defer cancel()
	targets := a.targets(ctx, &op, c)
	if ending(&op) {
		a.Operations.cancelMany(ctx, targets, c)
	}
	a.carryOut(ctx, targets, c, act, &op)
	if op.Verb == status.OpSuspend || op.Verb == status.OpResume {
		a.settle(ctx, targets, op.Verb == status.OpSuspend)
	}
	if op.Verb == status.OpCancel || op.Verb == status.OpSignal {
		targets = append(targets, a.latecomers(ctx, targets, c, act, &op)...)
	}
	result := &status.OperationResult{Kind: "OperationResult", APIVersion: apiVersion(), Items: append(steps, outcomes(targets)...)}
	a.list(w, r, result)
}

// freeSettings is how many bytes of settings are parsed of anybody's update.
const freeSettings = 4 << 10

// parsesSettings reports whether the values of an update are parsed before its
// jobs are looked at, as scontrol does: where they are short, or the caller may
// change one of the jobs. Nobody else has the service parse a long value.
func (a *API) parsesSettings(ctx context.Context, op *status.Operation, c *directory.Caller) bool {
	size := 0
	for key, v := range op.Set {
		size += len(key) + len(v)
	}
	return size <= freeSettings || slices.ContainsFunc(a.targets(ctx, op, c), func(t target) bool {
		if t.row == nil {
			return false
		}
		_, err := a.Operations.job(c, t.row, status.OpUpdate)
		return err == nil
	})
}

// carryOut acts on every target that exists, several at a time.
func (a *API) carryOut(ctx context.Context, targets []target, c *directory.Caller, act action, op *status.Operation) {
	next := make(chan *target)
	var wg sync.WaitGroup
	for range min(workers, len(targets)) {
		wg.Go(func() {
			for t := range next {
				t.Error = text(a.act(ctx, c, t, act, op))
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

// Refused is an answer to an operation on one job, in Slurm's words.
type Refused = refusal.Text

// Slurm's texts for operations.
const (
	textInvalidID           = "Invalid job id specified"
	errDone         Refused = "Job/step already completing or completed"
	errDenied       Refused = "Access/permission denied"
	errInvalidID    Refused = textInvalidID
	errComponent    Refused = "Operation not permitted on individual component of heterogeneous job"
	errPending      Refused = "Job is pending execution"
	errNotPending   Refused = "Job is no longer pending execution"
	errDisabled     Refused = "Requested operation is presently disabled"
	errNotNow       Refused = "Job can not be altered now, try again later"
	errUnknownUser  Refused = "Invalid user id"
	errFinishedHold Refused = "Job has already finished"
	errNotSuspended Refused = "Job is not suspended"
	errNotRunning   Refused = "Job is not running"
	errNotSupported Refused = "Requested operation not supported on this system"
)

// text is the outcome for one job.
func text(err error) string {
	var r Refused
	switch {
	case err == nil:
		return ""
	case errors.As(err, &r):
		return string(r)
	case apierrors.IsNotFound(err):
		return textInvalidID
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.NotInTime
	}
	return err.Error()
}

// action does the operation on one job.
type action func(ctx context.Context, c *directory.Caller, row *table.Row) error

// highestSignal is SIGRTMAX.
const highestSignal = 64

// verb chooses the action; its errors are about the request as a whole.
func (o *Operations) verb(op *status.Operation) (action, error) {
	if op.Entity != "" && op.Entity != status.EntityJob {
		return nil, nil
	}
	filters := len(op.Jobs) + len(op.Users) + len(op.Names) + len(op.Partitions) + len(op.States) + len(op.Accounts) + len(op.QOS) +
		len(op.WCKeys) + len(op.Reservations) + len(op.Nodes)
	if filters == 0 {
		return nil, errors.New("the Operation names no job and no filter")
	}
	if len(op.Jobs) > maxNamed {
		return nil, fmt.Errorf("the Operation names %d jobs; %d are the most", len(op.Jobs), maxNamed)
	}
	switch op.Verb {
	case status.OpCancel:
		return o.cancel, nil
	case status.OpRequeue:
		return unlessOver(o.requeue, op.Set["Incomplete"]), nil
	case status.OpHold:
		return o.hold, nil
	case status.OpUHold:
		return o.holdAs("user"), nil
	case status.OpRequeueHold:
		special := strings.HasPrefix(strings.ToUpper(op.Set["State"]), "SPECIALEXIT")
		return unlessOver(func(ctx context.Context, c *directory.Caller, row *table.Row) error {
			return o.requeueHold(ctx, c, row, special)
		}, op.Set["Incomplete"]), nil
	case status.OpSuspend:
		return o.suspend, nil
	case status.OpResume:
		return o.resume, nil
	case status.OpTop:
		return o.top, nil
	case status.OpNotify:
		return func(_ context.Context, c *directory.Caller, row *table.Row) error {
			return o.notify(c, row, op.Message)
		}, nil
	case status.OpUpdate:
		return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
			return o.update(ctx, c, row, op.Set)
		}, nil
	case status.OpRelease:
		return o.release, nil
	case status.OpComplete:
		if op.Status < 0 || op.Status > 255 {
			return nil, fmt.Errorf("%d is not an exit code", op.Status)
		}
		return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
			return o.complete(ctx, c, row, op.Status)
		}, nil
	case status.OpSignal:
		if op.Signal < 1 || op.Signal > highestSignal {
			return nil, fmt.Errorf("%d is not a signal", op.Signal)
		}
		return func(ctx context.Context, c *directory.Caller, row *table.Row) error { return o.signal(ctx, c, row, op) }, nil
	}
	return nil, fmt.Errorf("%q is not an operation", op.Verb)
}

// unlessOver leaves jobs alone that have ended or never begun, where that is
// asked for.
func unlessOver(act action, asked string) action {
	if asked == "" {
		return act
	}
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		if row.Final || row.State == v1alpha1.StatePending {
			return nil
		}
		return act(ctx, c, row)
	}
}

// patience bounds one write.
const patience = 30 * time.Second
