package admission

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

// prepareComponents does for the other components of a heterogeneous job what prepare
// does for the first, and numbers them. Each component will be a job of its own,
// and is checked as one.
func (a *Admission) prepareComponents(
	b *v1alpha1.BatchJob, user *v1alpha1.User, caller *directory.Caller, p *patch,
) error {
	if caller.Trusted {
		return nil
	}
	n := len(b.Spec.Components)
	if n == 0 {
		if b.Spec.Job.Het != nil {
			b.Spec.Job.Het = nil
			p.remove("/spec/job/het")
		}
		return nil
	}
	if b.Spec.Job.Array != nil {
		return refuse(refusal.InvalidArray)
	}
	for i := range b.Spec.Components {
		component := &v1alpha1.BatchJob{ObjectMeta: b.ObjectMeta}
		component.Spec.Job = b.Spec.Components[i]
		if component.Spec.Job.Array != nil {
			return refuse(refusal.InvalidArray)
		}
		unused := &patch{} // the components are patched as a whole
		if err := a.prepare(component, user, caller, unused); err != nil {
			return err
		}
		p.warnings = append(p.warnings, unused.warnings...)
		component.Spec.Job.Partitions = partitionsOf(component)
		component.Spec.Job.Het = &job.Het{Offset: int32(i + 1), Size: int32(n + 1)}
		b.Spec.Components[i] = component.Spec.Job
	}
	b.Spec.Job.Het = &job.Het{Size: int32(n + 1)}
	p.set("/spec/job/het", b.Spec.Job.Het)
	p.set("/spec/components", b.Spec.Components)
	return nil
}

// partitionsOf returns the partitions that the job names, or the one that prepare
// chose.
func partitionsOf(b *v1alpha1.BatchJob) []string {
	if len(b.Spec.Job.Partitions) > 0 {
		return b.Spec.Job.Partitions
	}
	return []string{b.Spec.Partition}
}
