package starter

import (
	"context"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// take reserves the agent of an earlier job of the same kin that waits at the very
// place, in a pod like the one that the job would be given; nil: there is none.
func (s *Starter) take(p *Placement) *agentapi.Place {
	if s.Pool == nil || len(p.Allocation.Nodes) != 1 {
		return nil
	}
	kin := control.Kin(p.Job, p.Partition)
	if kin == "" {
		return nil
	}
	x, ok := s.Pool.Take(kin, &p.Allocation.Nodes[0], func() string { return s.mold(p) })
	if !ok {
		return nil
	}
	return x
}

// mold is that of the pod that the job would be given; "": it cannot be made.
func (s *Starter) mold(p *Placement) string {
	b := *p.Job
	b.Status = v1alpha1.BatchJobStatus{Attempt: 1, Partition: p.Partition, Allocation: p.Allocation}
	_, set, err := s.build(&b)
	if err != nil || len(set.Spec.ReplicatedJobs) != 1 {
		return ""
	}
	return set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations[wire.AnnotationMold]
}

// runningAt is the state of a job that runs in the pod at x.
func runningAt(x *agentapi.Place) func(*v1alpha1.BatchJobStatus) {
	return func(st *v1alpha1.BatchJobStatus) {
		st.State, st.Pods = v1alpha1.StateRunning, &x.Host
		st.Allocation = st.Allocation.DeepCopy()
		st.Allocation.Nodes[0].Address = x.Address
	}
}

// placeAt places a job in the pod at x.
func (s *Starter) placeAt(ctx context.Context, p Placement, x *agentapi.Place) error {
	b, err := s.write(ctx, p, runningAt(x))
	if err != nil {
		s.Pool.Return(x)
		return err
	}
	s.Pool.Give(x, b)
	return nil
}
