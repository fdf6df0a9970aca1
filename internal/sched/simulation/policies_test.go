package simulation

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/preemption"
)

// Types of preemption (slurm.conf(5), PreemptType).
const (
	preemptByQOS       = "preempt/qos"
	preemptByPartition = "preempt/partition_prio"
)

// A class is a QOS or a partition, depending on the type of preemption. Jobs of the
// class urgent preempt those of the others.
const (
	classUrgent = "urgent"
	classSpare  = "spare" // its jobs are requeued
	classScrap  = "scrap" // its jobs are cancelled
)

// modes are how the jobs of the classes are preempted.
var modes = map[string]string{classSpare: preemption.ModeRequeue, classScrap: preemption.ModeCancel}

var minute int32 = 60

// graceSeconds is the time between the warning of a job of the class scrap and its end.
const graceSeconds = 20

// policies returns the settings, partitions, users and QOS of the cluster, which never change.
func policies(preemptType string) []client.Object {
	settings := v1alpha1.ClusterSpec{PreemptType: preemptType, PreemptMode: preemption.ModeRequeue}
	if preemptType == preemptByQOS {
		settings.BackfillOrder = "slowdown"
		settings.SlurmdTimeout = &minute // otherwise every node comes back before its jobs are given up
	}
	all := []client.Object{
		fake.Settings(settings),
		fake.Partition("debug", func(p *v1alpha1.PartitionSpec) {
			p.Default, p.Nodes, p.PriorityTier, p.PreemptMode = true, "ALL", 2, "off"
		}),
	}
	for i, name := range userNames {
		all = append(all, fake.User(name, int64(1001+i)))
	}
	for _, name := range []string{classUrgent, classSpare, classScrap} {
		q := &v1alpha1.QOS{}
		q.Name, q.Spec.PreemptMode = name, modes[name]
		part := v1alpha1.PartitionSpec{Nodes: "ALL", PriorityTier: 1, PreemptMode: modes[name]}
		switch name {
		case classUrgent:
			q.Spec.Preempt = []string{classSpare, classScrap}
			part.PriorityTier = 3
		case classScrap:
			q.Spec.GraceTime, part.GraceTime = graceSeconds, graceSeconds
		}
		all = append(all, q, fake.Partition(name, func(p *v1alpha1.PartitionSpec) { *p = part }))
	}
	return all
}

// classOf returns the class of the job.
func (s *simulation) classOf(b *v1alpha1.BatchJob) string {
	if s.preemptType == preemptByQOS {
		return b.Spec.Job.QOS
	}
	return b.Spec.Partition
}
