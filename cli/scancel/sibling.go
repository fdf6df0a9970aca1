package scancel

import (
	"context"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
)

// exitNotFederated is Slurm's exit code if a job does not belong to a federation.
const exitNotFederated = 191

// refuseSibling prints an error for each job that --sibling would cancel: none of them
// belongs to a federation. Jobs that do not exist are no error, as in Slurm.
func (o *Options) refuseSibling(ctx context.Context, queue Queue) error {
	f := o.filter()
	f.IDs = o.op.Jobs
	list, err := queue.Jobs(ctx, f)
	if err != nil {
		return err
	}
	for i := range list.Items {
		id := format.JobID(&list.Items[i]) // with --quiet, too
		o.println("error: Kill job error on job id " + id + ": Not a valid federated job")
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &slurmerr.Error{Code: exitNotFederated}
}
