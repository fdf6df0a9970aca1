package keeper

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
)

// markRunning makes a workload's job RUNNING: all of its pods are bound. An assumed
// job stays assumed.
func (k *Keeper) markRunning(ctx context.Context, b *v1alpha1.BatchJob) error {
	now := metav1.NewMicroTime(k.Now())
	change := func(s *v1alpha1.BatchJobStatus) {
		s.State, s.StartTime, s.Message = v1alpha1.StateRunning, &now, ""
	}
	if k.Cluster.Jobs.IsAssumed(b) {
		if _, ok := k.Cluster.Jobs.AssumeStatus(b, now.Time, change); !ok {
			return errChanged
		}
	} else if _, err := k.write(ctx, b, change); err != nil {
		return err
	}
	k.noteProgress(b, func(m *decide.Progress) { m.Failures = 0 })
	return nil
}

// adopt writes the placement of a job whose object is pending but whose pod is bound: an
// earlier process ended before it wrote the placement.
func (k *Keeper) adopt(ctx context.Context, b *v1alpha1.BatchJob) error {
	p, ok := k.Cluster.Pods.ByUID(b.Spec.Workload.Pods[0].UID)
	if !ok || p.Spec.NodeName == "" {
		return errChanged
	}
	k.Log.Info("adopted a running job", "job", b.Spec.JobID, "node", p.Spec.NodeName)
	start := boundAt(p)
	_, err := k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Reason, s.Message, s.Requeues = v1alpha1.StateRunning, "", "", b.Spec.Requeues
		s.Attempt++
		s.Partition, s.TimeLimit = b.Spec.Partition, k.partitionTimeLimit(b.Spec.Partition, &b.Spec.Job)
		s.StartTime, s.EndTime = &start, nil
		s.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{k.podAllocation(b, p.Spec.NodeName)}}
	})
	return err
}

// boundAt returns when the pod was bound, according to its conditions.
func boundAt(p *corev1.Pod) metav1.MicroTime {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return metav1.NewMicroTime(c.LastTransitionTime.Time)
		}
	}
	return metav1.NewMicroTime(p.CreationTimestamp.Time)
}

// partitionTimeLimit returns the time limit of j in the partition, in minutes.
func (k *Keeper) partitionTimeLimit(partition string, j *job.Job) int32 {
	for _, p := range snapshot.EffectivePartitions(k.Cluster.Partitions.List()) {
		if p.Name == partition {
			return snapshot.TimeLimit(&p.Spec, j)
		}
	}
	return j.Time.Limit
}

// podAllocation returns the allocation of a single pod's job on the node, with CPUs that
// no other job has.
func (k *Keeper) podAllocation(b *v1alpha1.BatchJob, node string) v1alpha1.NodeAllocation {
	sh := &b.Spec.Job.Shape
	a := v1alpha1.NodeAllocation{Name: k.shortName(node), Node: node, CPUs: max(1, sh.CPUsPerTask), Tasks: 1}
	if sh.MemPerCPU != nil {
		a.Memory = *sh.MemPerCPU * int64(a.CPUs)
	}
	for _, g := range sh.GRES {
		a.GRES = append(a.GRES, v1alpha1.GRESAllocation{Name: g.Name, Type: g.Type, Count: g.Count})
	}
	var taken, free backfill.CPUSet
	for _, other := range k.Cluster.Jobs.List() {
		if !other.HoldsAllocation() {
			continue
		}
		for i := range other.Status.Allocation.Nodes {
			if o := &other.Status.Allocation.Nodes[i]; o.ObjectName() == node {
				if s, err := backfill.ParseCPUSet(o.CPUIDs); err == nil {
					taken.Union(s)
				}
			}
		}
	}
	for id := 0; free.Len() < int(a.CPUs); id++ {
		if !taken.Has(id) {
			free.Add(id)
		}
	}
	a.CPUIDs = free.String()
	return a
}

// shortName returns the node's name in Slurm.
func (k *Keeper) shortName(node string) string {
	return nodeinfo.ShortNames(k.Cluster.Nodes.List())[node]
}
