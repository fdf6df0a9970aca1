package api

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/queue/tasks"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// target is one job that is meant; row is nil for one that does not exist.
// Several targets may come from one name, of an array or a heterogeneous job.
type target struct {
	status.OperationStatus
	name int // place of the name among those of the Operation; -1: by filter
	row  *table.Row
	// tasks are those meant of the several that the row stands for; nil: all.
	tasks array.Set
	// component: the row is meant by itself, not with its whole job.
	component bool
	// done: it was acted upon together with others.
	done bool
}

// maxTargets bounds the rows that the names of one operation mean together: a
// name may be there often, and mean many tasks that were split off their array.
// What is beyond is answered status.NotInTime, for the client to ask again.
const maxTargets = 2 * maxNamed

// unfinished are the states of jobs that an operation by filter means.
var unfinished = []string{
	v1alpha1.StatePending, v1alpha1.StateSpecialExit, v1alpha1.StateReservationDeleted, v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended,
}

// targets are the jobs that the operation means, named ones in their order.
func (a *API) targets(ctx context.Context, op *status.Operation, c *directory.Caller) []target {
	q := table.Query{Users: op.Users, Partitions: op.Partitions, Names: op.Names, Accounts: op.Accounts, QOS: op.QOS}
	var err error
	if q.Nodes, err = hostlist.ParsePattern(op.Nodes...); err != nil {
		return []target{{OperationStatus: status.OperationStatus{Error: err.Error()}}}
	}
	if len(op.WCKeys)+len(op.Reservations) > 0 {
		q.Extra = &table.Extra{WCKeys: op.WCKeys, Reservations: op.Reservations}
	}
	a.people(&q)
	states(&q, op.States)
	if len(op.Jobs) == 0 {
		if len(q.States) == 0 {
			q.States = unfinished
		}
		a.confine(&q, c)
		a.Table.Await(ctx, q)
		rows := a.Table.Select(ctx, q)
		out := make([]target, len(rows))
		for i, row := range rows {
			out[i] = target{OperationStatus: status.OperationStatus{Job: strconv.FormatInt(row.ID, 10)}, name: -1, row: row}
		}
		return out
	}
	q.AllStates = q.AllStates || len(op.States) == 0
	a.Table.Await(ctx, table.Query{IDs: numbers(op.Jobs)})
	pass := q.Filter()
	var out []target
	for i, name := range op.Jobs {
		if ctx.Err() != nil || len(out) > maxTargets {
			out = append(out, target{OperationStatus: status.OperationStatus{Job: name, Error: status.NotInTime}, name: i})
			continue
		}
		out = append(out, a.named(ctx, name, i, &pass, op.Verb)...)
	}
	return out
}

// named returns the targets of one name that pass; nil: all of them.
func (a *API) named(ctx context.Context, name string, at int, pass *table.Filter, verb string) []target {
	unknown := target{OperationStatus: status.OperationStatus{Job: name, Error: textInvalidID}, name: at}
	r, ok := parseID(name)
	if !ok {
		return []target{unknown}
	}
	if row := a.Table.Get(r.id); r.component && (row == nil || row.HetJobID != r.leader) {
		return []target{unknown}
	}
	rows := a.meant(ctx, r)
	if pass != nil {
		rows = slices.DeleteFunc(rows, func(row *table.Row) bool { return !pass.Pass(row) })
	}
	if len(rows) == 0 {
		if whole := a.Table.Get(r.id); whole == nil || r.tasks != nil && whole.ArrayJobID != r.id {
			return []target{unknown}
		} else if r.tasks != nil && verb != status.OpCancel && verb != status.OpSignal && len(a.meant(ctx, r)) == 0 {
			return []target{unknown}
		}
		return nil // it is there and not meant, or was a task that is over
	}
	out := make([]target, len(rows))
	for i, row := range rows {
		t := target{OperationStatus: status.OperationStatus{Job: name}, name: at, row: row}
		if some := row.Rest.Without(func(i int32) bool { return !r.tasks.Has(i) }); r.tasks != nil && len(some) < len(row.Rest) {
			t.tasks = some
		}
		t.component = row.HetJobID != 0 && (r.component || row.HetJobID != r.id)
		out[i] = t
	}
	return out
}

// meant returns the rows that r stands for, whatever their state.
func (a *API) meant(ctx context.Context, r ref) []*table.Row {
	q := table.Query{AllStates: true}
	newRefs(&q).add(r)
	return a.Table.Select(ctx, q)
}

// oneJob is the id of the one job that r means; of an array its own.
func (a *API) oneJob(ctx context.Context, r ref) int64 {
	if _, one := r.tasks.Single(); !one {
		return r.id
	}
	if rows := a.meant(ctx, r); len(rows) == 1 {
		return rows[0].ID
	}
	return -1
}

// numbers are the ids among the names.
func numbers(names []string) []int64 {
	out := []int64{-1} // an empty list would mean every job
	for _, name := range names {
		if r, ok := parseID(name); ok {
			out = append(out, r.id)
		}
	}
	return out
}

// act does the operation on one target.
func (a *API) act(ctx context.Context, c *directory.Caller, t *target, act action, op *status.Operation) error {
	switch {
	case t.tasks != nil:
		return a.actOnTasks(ctx, c, t, act, op)
	case t.component && t.row.State == v1alpha1.StatePending && (op.Verb == status.OpCancel || op.Verb == status.OpSignal),
		t.component && (op.Verb == status.OpRequeue || op.Verb == status.OpRequeueHold):
		return errComponent
	default:
		return act(ctx, c, t.row)
	}
}

// actOnTasks does the operation on some of the tasks that a row stands for.
// Those that are cancelled disappear; for anything else they are split off.
func (a *API) actOnTasks(ctx context.Context, c *directory.Caller, t *target, act action, op *status.Operation) error {
	o := a.Operations
	if _, err := o.job(c, t.row, authz.Action(op.Verb)); err != nil {
		return err
	}
	switch {
	case ending(op):
		left, err := tasks.Drop(ctx, o.Cluster, t.row.ID, t.tasks)
		if err == nil && left == 0 {
			err = o.cancel(ctx, c, t.row)
		}
		return gone(err)
	case op.Verb == status.OpSignal:
		return errNotNow
	case op.Verb == status.OpRequeue, op.Verb == status.OpRequeueHold:
		return errPending
	}
	split, err := tasks.Split(ctx, o.Cluster, t.row.ID, t.tasks, nil)
	if err != nil {
		return gone(err)
	}
	for _, b := range split {
		if row := a.Table.Get(b.Spec.JobID); row != nil {
			err = errors.Join(err, act(ctx, c, row))
		}
	}
	return err
}

// gone turns the disappearance of a task into an answer: it started meanwhile.
func gone(err error) error {
	if errors.Is(err, tasks.ErrGone) {
		return errNotNow
	}
	return err
}

// latecomers are tasks that were split off while their array was being
// cancelled; they are acted upon as well.
func (a *API) latecomers(ctx context.Context, before []target, c *directory.Caller, act action, op *status.Operation) []target {
	if !slices.ContainsFunc(before, func(t target) bool { return t.row != nil && len(t.row.Rest) > 0 }) {
		return nil
	}
	seen := map[int64]bool{}
	for _, t := range before {
		if t.row != nil {
			seen[t.row.ID] = true
		}
	}
	late := slices.DeleteFunc(a.targets(ctx, op, c), func(t target) bool { return t.row == nil || seen[t.row.ID] })
	a.carryOut(ctx, late, c, act, op)
	return late
}

// outcomes returns one status for each name: of several jobs that one name means,
// those that were over already do not matter beside others. A job that a filter
// chose and that ended before it was acted upon is left out: it was not meant.
func outcomes(targets []target) []status.OperationStatus {
	out := make([]status.OperationStatus, 0, len(targets))
	place := map[int]int{}
	for i := range targets {
		t := &targets[i]
		if t.name < 0 && over(t.Error) {
			continue
		}
		at, known := place[t.name]
		if t.name < 0 || !known {
			place[t.name] = len(out)
			out = append(out, t.OperationStatus)
			continue
		}
		if old := &out[at]; over(old.Error) || old.Error == "" && t.Error != "" && !over(t.Error) {
			old.Error = t.Error
		}
	}
	return out
}

// over tells whether the text says no more than that a job has ended.
func over(text string) bool { return text == string(errDone) || text == string(errFinishedHold) }
