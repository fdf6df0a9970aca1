package sbatch

import (
	"context"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
)

// explain returns the error of a failed submission in Slurm's words. Refusals of the job
// have Slurm's text already; other errors are about the connection to the cluster.
func explain(ctx context.Context, cluster Cluster, j *job.Job, testOnly bool, err error) error {
	switch kube.KindOf(err) {
	case kube.Denied, kube.Busy:
	case kube.Expired, kube.Forbidden:
		return slurmerr.Wrap(slurmerr.Denied, err, "Batch job submission failed: "+err.Error())
	default:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Batch job submission failed: "+err.Error())
	}
	if testOnly {
		before := jobs.TestOnlyRefusal(ctx, cluster, "sbatch", j.Partitions, err)
		return &slurmerr.Error{Kind: slurmerr.Refused, Code: 1, Before: before}
	}
	text := jobs.RefusalText(ctx, cluster, j.Partitions, "Batch job submission failed", err)
	return slurmerr.Wrap(slurmerr.Refused, err, text)
}
