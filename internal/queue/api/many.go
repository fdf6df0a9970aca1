package api

import (
	"context"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/cancels"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// ending tells whether the operation ends the jobs that it means.
func ending(op *status.Operation) bool {
	return op.Verb == status.OpCancel || op.Verb == status.OpSignal && op.Signal == sigkill && !op.Batch && !op.Full
}

// cancelMany cancels the targets that wait, if they are many, by one write.
// Whatever it does not see to is left to be done one by one.
func (o *Operations) cancelMany(ctx context.Context, targets []target, c *directory.Caller) {
	if o.Cancels == nil || len(targets) < cancels.Least {
		return
	}
	var jobs []*v1alpha1.BatchJob
	var meant []*target
	for i := range targets {
		t := &targets[i]
		if t.row == nil || t.tasks != nil || t.component {
			continue
		}
		if b, err := o.job(c, t.row, status.OpCancel); err == nil && plain(b) && pending(b) && b.Spec.Cancel == nil {
			jobs, meant = append(jobs, b), append(meant, t)
		}
	}
	if len(jobs) < cancels.Least || o.Cancels.Add(ctx, jobs, c.Name) != nil {
		return
	}
	for _, t := range meant {
		t.done = true
	}
}

// plain: nothing was or will be split off the job, and it has pods of its own.
func plain(b *v1alpha1.BatchJob) bool {
	return b.Spec.Job.Array == nil && array.HetID(b) == 0 && b.Spec.Origin == nil && b.Spec.Workload == nil
}

// final tells whether the job is over.
func final(b *v1alpha1.BatchJob) bool { return !pending(b) && !live(b) }
