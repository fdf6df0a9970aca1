package operations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// ranked is a pending job with its priority, and the priority that it will have.
type ranked struct {
	job      *v1alpha1.BatchJob
	priority int64
	next     int64
}

// top moves jobs, in the order in which the operation names them, ahead of the other
// pending jobs of their user in their partition. It is one operation on all of them,
// with one outcome.
func (s *Service) top(ctx context.Context, c *directory.Caller, op *status.Operation) []status.OperationStatus {
	first, others, err := s.rank(ctx, c, s.targets(ctx, c, op))
	if err == nil {
		reorder(first, others)
		err = s.setPriorities(ctx, append(first, others...))
	}
	return []status.OperationStatus{outcome(strings.Join(op.Jobs, ","), err)}
}

// rank returns the jobs that are to be first, and the other pending jobs of their user
// in their partition by id.
func (s *Service) rank(
	ctx context.Context, c *directory.Caller, targets []target,
) (first, others []ranked, err error) {
	chosen := map[int64]bool{}
	for i := range targets {
		t := &targets[i]
		switch {
		case t.row == nil && !c.Operator: // who may not do it does not learn which jobs there are
			return nil, nil, refusal.AccessDenied
		case t.row == nil:
			return nil, nil, cmp.Or(t.err, error(refusal.InvalidJobID))
		}
		b, err := s.Job(c, t.row, status.OpTop)
		switch {
		case err != nil:
			return nil, nil, err
		case !change.Pending(b):
			return nil, nil, refusal.NotPending
		case b.Spec.Job.Hold != "" && len(first) == 0:
			return nil, nil, refusal.JobHeld
		case chosen[t.row.ID], len(first) > 0 && !competes(b, first[0].job): // as in Slurm
			continue
		}
		chosen[t.row.ID] = true
		first = append(first, ranked{job: b, priority: s.Table.Merged(t.row).Priority})
	}
	if len(first) == 0 {
		return nil, nil, refusal.InvalidJobID
	}
	pending := table.Query{Users: []string{first[0].job.Spec.User}, States: []string{v1alpha1.StatePending}}
	for _, r := range s.Table.Select(ctx, pending) {
		b, ok := s.Cluster.Job(r.ID)
		if ok && !chosen[r.ID] && competes(b, first[0].job) {
			others = append(others, ranked{job: b, priority: s.Table.Merged(r).Priority})
		}
	}
	return first, others, nil
}

// competes reports whether both jobs are pending in the same partition for the same user,
// and b is not held.
func competes(b, other *v1alpha1.BatchJob) bool {
	return b.Spec.Job.Hold == "" && b.Spec.Partition == other.Spec.Partition && b.Spec.User == other.Spec.User
}

// reorder sets the next priorities as Slurm 22.05.8 does. The first jobs get the highest
// priorities of all, each less than the one before. The sum that they gain is subtracted
// from the others in equal parts; the others remain below them.
func reorder(first, others []ranked) {
	var all []int64
	for _, j := range slices.Concat(first, others) {
		all = append(all, j.priority)
	}
	slices.SortFunc(all, func(a, b int64) int { return cmp.Compare(b, a) })
	last, gain := all[0]+1, int64(0)
	for i := range first {
		j := &first[i]
		last = min(all[i], max(last, 2)-1)
		j.next = last
		gain += j.next - j.priority
	}
	for i := range others {
		j := &others[i]
		j.next = j.priority - gain/int64(len(others)-i)
		if j.next >= last {
			j.next = max(last, 2) - 1
		}
		gain -= j.priority - j.next
	}
}

// setPriorities changes the nice values of the jobs so that they get their next
// priorities.
func (s *Service) setPriorities(ctx context.Context, jobs []ranked) error {
	for _, j := range jobs {
		if j.next == j.priority {
			continue
		}
		nice := int64(j.job.Spec.Job.Nice) + j.priority - j.next
		nice = min(max(nice, -change.MaxNice), change.MaxNice)
		spec := map[string]any{"job": map[string]any{"nice": int32(nice)}}
		if err := s.patchJob(ctx, j.job, specPatch(spec)); err != nil {
			return err
		}
	}
	return nil
}
