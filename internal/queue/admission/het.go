package admission

import (
	"maps"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
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
	if err := excludeOthersNodes(b); err != nil {
		return err
	}
	p.set("/spec/job/placement", b.Spec.Job.Placement)
	p.set("/spec/job/het", b.Spec.Job.Het)
	p.set("/spec/components", b.Spec.Components)
	return nil
}

// maxExcluded bounds the names that are added to the exclusions of the components of a
// heterogeneous job, because they are stored with it.
const maxExcluded = 2048

// excludeOthersNodes excludes from each component the nodes that the others require,
// because components never share a node. It refuses components that require the same
// node.
func excludeOthersNodes(b *v1alpha1.BatchJob) error {
	all := []*job.Placement{&b.Spec.Job.Placement}
	for i := range b.Spec.Components {
		all = append(all, &b.Spec.Components[i].Placement)
	}
	requiredBy := map[string]int{}
	for i, pl := range all {
		for _, node := range pl.NodeList {
			if other, required := requiredBy[node]; required && other != i {
				return refuse(refusal.InvalidNode)
			}
			requiredBy[node] = i
		}
	}
	if len(requiredBy)*len(all) > maxExcluded {
		return nil // the planner keeps the components apart all the same
	}
	nodes := slices.Collect(maps.Keys(requiredBy))
	for i, pl := range all {
		for _, node := range nodes {
			if requiredBy[node] != i && !slices.Contains(pl.Exclude, node) {
				pl.Exclude = append(pl.Exclude, node)
			}
		}
		slices.SortFunc(pl.Exclude, hostlist.Compare)
	}
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
