package snapshot

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// blocked says why the job cannot be considered at all, in Slurm's words
// (squeue(1), JOB REASON CODES); "" if it can.
func (v *View) blocked(b *v1alpha1.BatchJob, p *partition) string {
	j := &b.Spec.Job
	if r := job.HeldReason(j.Hold); r != "" {
		return r
	}
	if r := v.queue.dependency(b); r != "" {
		return r
	}
	switch strings.ToUpper(p.spec.State) {
	case "DOWN":
		return "PartitionDown"
	case "INACTIVE":
		return "PartitionInactive"
	}
	nodes := max(j.Shape.MinNodes, 1)
	switch {
	case exceeds(p.timeLimit(j), p.maxTime()):
		return "PartitionTimeLimit"
	case p.spec.MaxNodes > 0 && nodes > p.spec.MaxNodes:
		return "PartitionNodeLimit"
	}
	return ""
}
