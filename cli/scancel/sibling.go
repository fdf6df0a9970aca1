package scancel

import (
	"context"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// exitNotFederated is Slurm's exit code if a job does not belong to a federation.
const exitNotFederated = 191

// refuseSibling prints an error for each job that --sibling would cancel: none of them
// belongs to a federation. As in Slurm, jobs that do not exist are an error only beside filters.
func (o *Options) refuseSibling(ctx context.Context, queue Queue) error {
	missing, err := o.missingBesideFilters(ctx, queue)
	if err != nil {
		return err
	}
	for _, id := range missing {
		o.println("error: Kill job error on job id " + id + ": " + jobs.ErrInvalidID)
	}
	list := &status.JobList{}
	if f := o.filter(); !o.nothing {
		f.IDs = o.op.Jobs
		if !o.filtered() {
			f.States = jobs.AllStates
		}
		if list, err = queue.Jobs(ctx, f); err != nil {
			return err
		}
	}
	for i := range list.Items {
		id := format.JobID(&list.Items[i]) // with --quiet, too
		o.println("error: Kill job error on job id " + id + ": Not a valid federated job")
	}
	switch {
	case len(list.Items) > 0:
		return &slurmerr.Error{Code: exitNotFederated}
	case len(missing) > 0:
		return &slurmerr.Error{Code: 1}
	}
	return nil
}

// missingBesideFilters returns the ids of jobs that do not exist, if there are filters, too:
// only then Slurm looks for the jobs.
func (o *Options) missingBesideFilters(ctx context.Context, queue Queue) (missing []string, err error) {
	if !o.filtered() {
		return nil, nil
	}
	for _, id := range o.op.Jobs {
		list, err := queue.Jobs(ctx, jobs.Filter{IDs: []string{id}, Fields: []string{"id"}})
		if err != nil {
			return nil, err
		}
		if len(list.Items) == 0 {
			missing = append(missing, id)
		}
	}
	return missing, nil
}
