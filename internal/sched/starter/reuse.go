package starter

import (
	"context"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// reserveAgent reserves the agent of a previous job that waits with the planned allocation,
// in a pod identical to the one that the job would get. It returns nil if there is none.
func (s *Starter) reserveAgent(p *Placement) *agentapi.Place {
	if s.Pool == nil || len(p.Allocation.Nodes) != 1 {
		return nil
	}
	reuseKey := control.ReuseKey(p.Job, p.Partition)
	if reuseKey == "" {
		return nil
	}
	return s.Pool.Reserve(reuseKey, &p.Allocation.Nodes[0], func() string { return s.templateHash(p) })
}

// templateHash returns the hash of the pod template that the job would get, or "" if it
// cannot be built.
func (s *Starter) templateHash(p *Placement) string {
	b := *p.Job
	b.Status = v1alpha1.BatchJobStatus{Attempt: 1, Partition: p.Partition, Allocation: p.Allocation}
	_, set, err := s.build(&b)
	if err != nil || len(set.Spec.ReplicatedJobs) != 1 {
		return ""
	}
	return set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations[wire.AnnotationPodTemplateHash]
}

// runningAt returns the change by which a job runs in the pod at x.
func runningAt(x *agentapi.Place) func(*v1alpha1.BatchJobStatus) {
	return func(st *v1alpha1.BatchJobStatus) {
		st.State, st.Pods = v1alpha1.StateRunning, &x.Host
		st.Allocation = st.Allocation.DeepCopy()
		x.Record(&st.Allocation.Nodes[0])
	}
}

// placeAt places a job in the pod at x.
func (s *Starter) placeAt(ctx context.Context, p Placement, x *agentapi.Place) error {
	b, err := s.write(ctx, p, runningAt(x))
	if err != nil {
		s.Pool.Release(x)
		return err
	}
	s.Pool.Assign(x, b)
	return nil
}
