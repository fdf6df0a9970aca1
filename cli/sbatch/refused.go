package sbatch

import (
	"context"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
)

// explain puts a failed submission into Slurm's words. What the cluster
// decided against the job has Slurm's text already; all else is about the way
// to the cluster.
func explain(ctx context.Context, cluster Cluster, j *job.Job, testOnly bool, err error) error {
	switch kube.KindOf(err) {
	case kube.Denied, kube.Busy:
	case kube.Expired, kube.Forbidden:
		return slurmerr.Wrap(slurmerr.Denied, err, "Batch job submission failed: "+err.Error())
	default:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Batch job submission failed: "+err.Error())
	}
	if testOnly {
		return &slurmerr.Error{Kind: slurmerr.Refused, Code: 1, Before: jobs.TestOnlyRefusal(ctx, cluster, "sbatch", j.Partitions, err)}
	}
	return slurmerr.Wrap(slurmerr.Refused, err, jobs.RefusalText(ctx, cluster, j.Partitions, "Batch job submission failed", err))
}
