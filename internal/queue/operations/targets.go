package operations

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// target is one job that an operation is about. One reference to an array or to a
// heterogeneous job yields several targets.
type target struct {
	ref   string // as in the operation, or the job's id
	index int    // of the reference in Operation.Jobs, or byFilter
	row   *table.Row
	// tasks are those of the row's tasks that the operation is about; nil: all of them.
	tasks array.Set
	// component: the operation names this component, not the whole heterogeneous
	// job.
	component bool
	done      bool  // the operation was carried out together with other jobs
	err       error // the outcome; if row is nil, why there is no job
}

// byFilter is the index of a target that the operation does not name.
const byFilter = -1

// maxTargets bounds the targets of one operation: a reference may occur often, and refer to
// many tasks that were split off their array. The others have the outcome
// status.NotInTime, so that the client requests them again.
var maxTargets = 2 * int(bounds.JobRefs.Most)

// unfinishedStates are the states of the jobs that an operation by filter is about.
var unfinishedStates = []string{
	v1alpha1.StatePending, v1alpha1.StateSpecialExit, v1alpha1.StateReservationDeleted,
	v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended,
}

// targets returns the jobs that the operation is about, in the order in which it
// names them.
func (s *Service) targets(ctx context.Context, c *directory.Caller, op *status.Operation) []target {
	q := table.Query{Users: op.Users, Partitions: op.Partitions, Names: op.Names, Accounts: op.Accounts, QOS: op.QOS}
	var err error
	if q.Nodes, err = hostlist.ParsePattern(op.Nodes...); err != nil {
		return []target{{err: err}}
	}
	if len(op.WCKeys)+len(op.Reservations) > 0 {
		q.Extra = &table.Extra{WCKeys: op.WCKeys, Reservations: op.Reservations}
	}
	s.resolver().ResolveUsers(&q)
	query.AddStates(&q, op.States)
	if len(op.Jobs) == 0 {
		return s.targetsByFilter(ctx, c, q)
	}
	q.AllStates = q.AllStates || len(op.States) == 0
	return s.targetsByName(ctx, c, op, q.Filter())
}

func (s *Service) targetsByFilter(ctx context.Context, c *directory.Caller, q table.Query) []target {
	if len(q.States) == 0 {
		q.States = unfinishedStates
	}
	s.resolver().Restrict(&q, c)
	s.Table.Await(ctx, q)
	rows := s.Table.Select(ctx, q)
	out := make([]target, len(rows))
	for i, row := range rows {
		out[i] = target{ref: strconv.FormatInt(row.ID, 10), index: byFilter, row: row}
	}
	return out
}

// targetsByName returns the targets of the operation's references that pass the
// filter.
func (s *Service) targetsByName(
	ctx context.Context, c *directory.Caller, op *status.Operation, filter table.Filter,
) []target {
	s.Table.Await(ctx, table.Query{IDs: query.IDs(op.Jobs)})
	var out []target
	for i, ref := range op.Jobs {
		if ctx.Err() != nil || len(out) > maxTargets {
			out = append(out, target{ref: ref, index: i, err: context.DeadlineExceeded})
			continue
		}
		if selects(op) && s.allEnded(ctx, ref) {
			out = append(out, target{ref: ref, index: i, err: refusal.InvalidJobID})
			continue
		}
		out = append(out, s.targetsOf(ctx, c, ref, i, &filter, op.Verb)...)
	}
	return out
}

// selects reports whether op is a scancel that has filters beside ids. As in Slurm, it
// does not know jobs that have ended.
func selects(op *status.Operation) bool {
	filters := len(op.Users) + len(op.Names) + len(op.Partitions) + len(op.States) + len(op.Accounts) + len(op.QOS) +
		len(op.WCKeys) + len(op.Reservations) + len(op.Nodes)
	return filters > 0 && (op.Verb == status.OpCancel || op.Verb == status.OpSignal)
}

// allEnded reports whether no job that the reference names is pending or running.
func (s *Service) allEnded(ctx context.Context, ref string) bool {
	r, ok := query.ParseRef(ref)
	return ok && !slices.ContainsFunc(s.resolver().Rows(ctx, r), func(row *table.Row) bool {
		return row.State == v1alpha1.StateCompleting || slices.Contains(unfinishedStates, row.State)
	})
}

// unknownIfEnded returns act with another error for a job that has ended.
func unknownIfEnded(act action) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		err := act(ctx, c, row)
		if errors.Is(err, refusal.AlreadyCompleting) {
			return refusal.InvalidJobID
		}
		return err
	}
}

// targetsOf returns the targets of one reference that pass the filter; a nil
// filter lets all pass.
func (s *Service) targetsOf(
	ctx context.Context, c *directory.Caller, ref string, index int, filter *table.Filter, verb string,
) []target {
	unknown := []target{{ref: ref, index: index, err: refusal.InvalidJobID}}
	r, ok := query.ParseRef(ref)
	if !ok {
		return unknown
	}
	cancels := verb == status.OpCancel || verb == status.OpSignal
	if cancels && r.ID == r.HetJobID { // as in Slurm, 12+0 is the whole job to scancel
		r.Component = false
	}
	if row := s.Table.Get(r.ID); r.Component && (row == nil || row.HetJobID != r.HetJobID) {
		return unknown
	}
	rows := s.resolver().Rows(ctx, r)
	if r.Component { // 12+0 is not 12
		rows = slices.DeleteFunc(rows, func(row *table.Row) bool { return row.ID != r.ID })
	}
	if filter != nil {
		rows = slices.DeleteFunc(rows, func(row *table.Row) bool { return !filter.Pass(row) })
	}
	if len(rows) == 0 {
		if (verb == status.OpSuspend || verb == status.OpResume) && !c.Operator && s.Table.Get(r.ID) != nil {
			return []target{{ref: ref, index: index, err: refusal.AccessDenied}} // Slurm asks for the right first
		}
		if s.isUnknown(ctx, r, verb) {
			return unknown
		}
		return nil // the filter excludes the job, or the task has ended
	}
	out := make([]target, len(rows))
	for i, row := range rows {
		out[i] = target{ref: ref, index: index, row: row, tasks: tasksOf(row, r)}
		out[i].component = row.HetJobID != 0 && (r.Component || row.HetJobID != r.ID)
	}
	return out
}

// isUnknown reports whether the reference is to no job. Ended tasks of an array
// are unknown, except to scancel.
func (s *Service) isUnknown(ctx context.Context, r query.Ref, verb string) bool {
	row := s.Table.Get(r.ID)
	switch {
	case row == nil:
		return true
	case r.Tasks == nil:
		return false
	case row.ArrayJobID != r.ID:
		return true
	case verb == status.OpCancel || verb == status.OpSignal:
		return false
	}
	return len(s.resolver().Rows(ctx, r)) == 0
}

// tasksOf returns those of the row's tasks that the reference names, or nil if it names
// all of them.
func tasksOf(row *table.Row, r query.Ref) array.Set {
	if r.Tasks == nil {
		return nil
	}
	named := row.Rest.Without(func(i int32) bool { return !r.Tasks.Has(i) })
	if len(named) == len(row.Rest) {
		return nil
	}
	return named
}

// outcomes returns one outcome for each reference of the operation, and one for
// each job that a filter chose. Of several jobs of one reference, those that had
// ended before do not matter beside others. A job that a filter chose and that
// ended before the operation reached it is left out.
func outcomes(targets []target) []status.OperationStatus {
	type result struct {
		ref string
		err error
	}
	var list []result
	position := map[int]int{}
	for i := range targets {
		t := &targets[i]
		if t.index == byFilter {
			if !hasEnded(t.err) {
				list = append(list, result{t.ref, t.err})
			}
			continue
		}
		at, known := position[t.index]
		if !known {
			position[t.index] = len(list)
			list = append(list, result{t.ref, t.err})
			continue
		}
		before := list[at].err
		if hasEnded(before) || before == nil && t.err != nil && !hasEnded(t.err) {
			list[at].err = t.err
		}
	}
	out := make([]status.OperationStatus, len(list))
	for i, r := range list {
		out[i] = outcome(r.ref, r.err)
	}
	return out
}

// hasEnded reports whether err says only that the job has ended.
func hasEnded(err error) bool {
	var text refusal.Text
	return errors.As(err, &text) && (text == refusal.AlreadyCompleting || text == refusal.JobFinished)
}
