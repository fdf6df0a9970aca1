package sbatch

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// explain puts a failed submission into Slurm's words. What the cluster
// decided against the job has Slurm's text already; all else is about the way
// to the cluster.
func explain(ctx context.Context, cluster Cluster, j *job.Job, testOnly bool, err error) error {
	switch kube.KindOf(err) {
	case kube.Denied:
	case kube.Expired, kube.Forbidden:
		return slurmerr.Wrap(slurmerr.Denied, err, "Batch job submission failed: "+err.Error())
	default:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Batch job submission failed: "+err.Error())
	}
	before, last := jobs.Refusal(err)
	if testOnly {
		e := &slurmerr.Error{Kind: slurmerr.Refused, Code: 1}
		for line := range strings.Lines(before) {
			e.Before = append(e.Before, "sbatch: error: "+strings.TrimSuffix(line, "\n"))
		}
		e.Before = append(e.Before, "allocation failure: "+last)
		return e
	}
	text := before + "Batch job submission failed: " + last
	if name := unknownPartition(ctx, cluster, j); name != "" {
		text = "invalid partition specified: " + name + "\n" + text
	}
	return slurmerr.Wrap(slurmerr.Refused, err, text)
}

// unknownPartition names a partition that was asked for and does not exist.
// Whether one is missing is asked only after a refusal.
func unknownPartition(ctx context.Context, cluster Cluster, j *job.Job) string {
	if len(j.Partitions) == 0 {
		return ""
	}
	list, err := cluster.Partitions(ctx)
	if err != nil {
		return ""
	}
	for _, name := range j.Partitions {
		if !slices.ContainsFunc(list.Items, func(p status.Partition) bool { return p.Name == name }) {
			return name
		}
	}
	return ""
}
