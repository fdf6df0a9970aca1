package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// Defaults of the cluster's parameters.
const (
	defaultKillWait    = 30
	defaultClusterName = "berth"
	defaultShell       = "/bin/bash"
)

// welcome returns everything that the agent needs. b is the job as recorded when
// its gang was complete.
func (s *Server) welcome(ctx context.Context, a *agent, b *v1alpha1.BatchJob) (*wire.Welcome, error) {
	w, err := s.describe(b, a.Index)
	if err != nil {
		return nil, err
	}
	secret, err := s.key.get(ctx)
	if err != nil {
		return nil, err
	}
	uid, gang := s.gangOf(b)
	cert, key, err := certificate(secret, uid, gang)
	if err != nil {
		return nil, err
	}
	w.Certificate, w.Key = string(cert), string(key)
	if w.Het, err = s.het(b); err != nil {
		return nil, err
	}
	if a.Index == 0 {
		if w.Script, w.Environment, err = s.script(ctx, b); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// script returns what the batch host runs, and its environment. Those of an array's
// task come from the cache if they are there.
func (s *Server) script(ctx context.Context, b *v1alpha1.BatchJob) (script, environment []byte, err error) {
	if o := b.Spec.Origin; o != nil && b.Spec.Task != nil {
		if p, ok := s.payloads.of(o.UID); ok {
			return p.script, p.environment, nil
		}
	}
	live, err := s.reread(ctx, b) // the stores keep no scripts
	switch {
	case err != nil:
		return nil, nil, err
	case live == nil || live.UID != b.UID || live.Status.Attempt != b.Status.Attempt:
		return nil, nil, errOver
	}
	return s.payload(ctx, live)
}

// describe returns what any agent of the job may know about it.
func (s *Server) describe(b *v1alpha1.BatchJob, index int) (*wire.Welcome, error) {
	user, ok := s.Cluster.Users.Get(b.Spec.User)
	if !ok {
		return nil, &failure{http.StatusServiceUnavailable, fmt.Sprintf("user %s is not known", b.Spec.User)}
	}
	described, byDefault := s.withMemory(b)
	if b.Status.Reservation != "" {
		described.Reservation = b.Status.Reservation
	}
	if described.Options["propagate"] == "" {
		p := s.Cluster.Parameters()
		described.Batch.Rlimits = job.WithoutRlimits(described.Batch.Rlimits, unpropagated(&p))
	}
	neutral, err := json.Marshal(&described)
	if err != nil {
		return nil, fmt.Errorf("job %d: %w", b.Spec.JobID, err)
	}
	w := &wire.Welcome{
		JobID: b.Spec.JobID, Attempt: b.Status.Attempt, Index: int32(index),
		Hosts: hosts(b.Status.Allocation), Job: neutral, KubeHost: s.KubeURL, Namespace: b.Namespace,
		DefaultMemory: byDefault,
	}
	person(w, user)
	if g := b.Spec.Job.Batch.Group; g != nil {
		w.Group, w.GID = g.Name, g.GID
	}
	s.circumstances(w, b)
	return w, nil
}

// payload returns the job's script and environment: its own, or those of the job
// that it was split off from.
func (s *Server) payload(ctx context.Context, b *v1alpha1.BatchJob) (script, environment []byte, err error) {
	o := b.Spec.Origin
	if o == nil {
		return b.Spec.Script, b.Spec.Environment, nil
	}
	if b.Spec.Task == nil {
		return nil, nil, nil // the script runs in the first component
	}
	whole := &v1alpha1.BatchJob{}
	if err := s.Cluster.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: o.Name}, whole); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, errOver
		}
		return nil, nil, fmt.Errorf("reading the array of job %d: %w", b.Spec.JobID, err)
	}
	if whole.UID != o.UID {
		return nil, nil, errOver
	}
	s.payloads.keep(whole)
	return whole.Spec.Script, whole.Spec.Environment, nil
}

// withMemory returns the job with the memory that the partition or the cluster
// gives to a job that requests none; byDefault reports whether it did.
func (s *Server) withMemory(b *v1alpha1.BatchJob) (j job.Job, byDefault bool) {
	j = b.Spec.Job
	if sh := &j.Shape; sh.MemPerNode != nil || sh.MemPerCPU != nil || sh.MemPerGPU != nil {
		return j, false
	}
	limits := []v1alpha1.MemoryLimits{s.Cluster.Parameters().MemoryLimits}
	if p, ok := s.Cluster.Partitions.Get(partitionOf(b)); ok {
		limits = []v1alpha1.MemoryLimits{p.Spec.MemoryLimits, limits[0]}
	}
	for _, l := range limits {
		switch {
		case l.DefMemPerCPU != nil:
			j.Shape.MemPerCPU = l.DefMemPerCPU
			return j, true
		case l.DefMemPerNode != nil:
			j.Shape.MemPerNode = l.DefMemPerNode
			return j, true
		}
	}
	return j, false
}

func hosts(a *v1alpha1.Allocation) []wire.Host {
	out := make([]wire.Host, 0, len(a.Nodes))
	for i := range a.Nodes {
		n := &a.Nodes[i]
		h := wire.Host{
			Name: n.Name, Address: n.Address, CPUs: n.CPUs, CPUIDs: n.CPUIDs, Memory: n.Memory, Tasks: n.Tasks,
			Topology: n.Topology,
		}
		for _, g := range n.GRES {
			h.GRES = append(h.GRES, wire.HostGRES{Name: g.Name, Type: g.Type, Count: g.Count, Indexes: g.Indexes})
		}
		out = append(out, h)
	}
	return out
}

func person(w *wire.Welcome, u *v1alpha1.User) {
	w.User, w.UID, w.GID, w.Home, w.Shell = u.Name, u.Spec.UID, u.Spec.GID, u.Spec.Home, u.Spec.Shell
	if w.Shell == "" {
		w.Shell = defaultShell
	}
	for _, g := range u.Spec.Groups {
		if g.GID == u.Spec.GID {
			w.Group = g.Name
		}
	}
}

func unpropagated(p *v1alpha1.ClusterSpec) []string {
	return option.Unpropagated(p.PropagateResourceLimits, p.PropagateResourceLimitsExcept)
}

// partitionOf returns the partition that the job runs in.
func partitionOf(b *v1alpha1.BatchJob) string {
	if b.Status.Partition != "" {
		return b.Status.Partition
	}
	return b.Spec.Partition
}

// nodeTimeout returns Welcome.NodeTimeout: no earlier than the node is lost for the keeper, which
// counts from when Kubernetes calls it unreachable.
func nodeTimeout(p *v1alpha1.ClusterSpec) int32 {
	const unreachableAfter = 50 * time.Second // the grace period of Kubernetes
	timeout := p.NodeTimeout()
	if timeout == 0 {
		return v1alpha1.MaxSlurmdTimeout
	}
	return int32((timeout + unreachableAfter).Seconds())
}

// circumstances sets account, partition and times.
func (s *Server) circumstances(w *wire.Welcome, b *v1alpha1.BatchJob) {
	p := s.Cluster.Parameters()
	w.Account, w.QOS = b.Spec.Job.Account, b.Spec.Job.QOS
	w.Partition = partitionOf(b)
	if w.ClusterName = p.ClusterName; w.ClusterName == "" {
		w.ClusterName = defaultClusterName
	}
	w.NodeTimeout = nodeTimeout(&p)
	if w.KillWait = defaultKillWait; p.KillWait != nil {
		w.KillWait = *p.KillWait
	}
	w.Site = site(&p)
	if b.Spec.Job.Options["propagate"] == "" {
		w.Unpropagated = unpropagated(&p)
	}
	w.Restarts, w.Traceparent = b.Status.Restarts, s.Traceparent(b)
	if id, t, ok := array.Task(b); ok {
		w.Array = &wire.ArrayTask{JobID: id, Index: t.Index, Count: t.Count, Min: t.Min, Max: t.Max, Step: t.Step}
	}
	if b.Status.StartTime == nil {
		return
	}
	w.StartTime = b.Status.StartTime.Unix()
	if end, ok := b.Status.LimitEnds(); ok {
		w.EndTime = end.Unix()
	}
}
