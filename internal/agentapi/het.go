package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
)

// components returns the components of the heterogeneous job that b belongs to, in
// their order, as they are now; nil: b belongs to none.
func (s *Server) components(b *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	id := array.HetID(b)
	if id == 0 {
		return nil
	}
	all := s.Cluster.SplitOff(id)
	if leader, ok := s.Cluster.Job(id); ok {
		all = append(all, leader)
	}
	slices.SortFunc(all, func(a, b *v1alpha1.BatchJob) int { return int(a.Spec.JobID - b.Spec.JobID) })
	return all
}

// hetPause is the interval of the checks of the other components.
const hetPause = 50 * time.Millisecond

// together waits until every component of b's heterogeneous job runs: the gang of
// all of them is complete.
func (s *Server) together(ctx context.Context, b *v1alpha1.BatchJob) error {
	if array.HetID(b) == 0 {
		return nil
	}
	timeout := time.NewTimer(s.Poll)
	defer timeout.Stop()
	tick := time.NewTicker(hetPause)
	defer tick.Stop()
	for {
		now, ok := s.Cluster.Job(b.Spec.JobID)
		if !ok || now.Status.Attempt != b.Status.Attempt || now.Status.Allocation == nil || !gathering(now) {
			return errOver
		}
		if s.allStarted(now) {
			return nil
		}
		select {
		case <-tick.C:
		case <-timeout.C:
			return &failure{http.StatusServiceUnavailable, "waiting for the job's other components"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// allStarted reports whether every component of b's heterogeneous job runs; true
// for any other job.
func (s *Server) allStarted(b *v1alpha1.BatchJob) bool {
	if array.HetID(b) == 0 {
		return true
	}
	all := s.components(b)
	missing := slices.ContainsFunc(all,
		func(c *v1alpha1.BatchJob) bool { return c.Status.Allocation == nil || !started(c) })
	return len(all) == int(b.Spec.Job.Het.Size) && !missing
}

// gangOf returns the gang whose agents share a key: the attempt, or, for a
// heterogeneous job, that of its first component.
func (s *Server) gangOf(b *v1alpha1.BatchJob) (types.UID, attempt) {
	if all := s.components(b); len(all) > 0 {
		b = all[0]
	}
	return b.UID, attempt{b.Spec.JobID, b.Status.Attempt}
}

// het describes the components to their agents.
func (s *Server) het(b *v1alpha1.BatchJob) ([]wire.HetComponent, error) {
	var out []wire.HetComponent
	for _, c := range s.components(b) {
		if c.Status.Allocation == nil {
			return nil, errOver // it went back to the queue, and so will this one
		}
		described, byDefault := s.withMemory(c)
		neutral, err := json.Marshal(&described)
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", c.Spec.JobID, err)
		}
		out = append(out, wire.HetComponent{
			JobID: c.Spec.JobID, Hosts: hosts(c.Status.Allocation), Partition: partitionOf(c),
			Account: c.Spec.Job.Account, QOS: c.Spec.Job.QOS, Job: neutral, DefaultMemory: byDefault,
		})
	}
	return out, nil
}
