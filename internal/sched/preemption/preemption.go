// Package preemption selects the running jobs that a pending job preempts
// (slurm.conf(5), PreemptType and PreemptMode). It is pure.
package preemption

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// Modes of preemption that are supported (slurm.conf(5), PreemptMode).
const (
	ModeCancel  = "CANCEL"
	ModeRequeue = "REQUEUE"
)

// Victim is a running job that is preempted.
type Victim struct {
	Job   *v1alpha1.BatchJob
	Mode  string
	Grace time.Duration // between the warning and the end of the job
}

// Cluster is the state that victims are selected from: a snapshot.Snapshot or a
// snapshot.Incremental.
type Cluster interface {
	Time() int64
	Parameters() *v1alpha1.ClusterSpec
	Job(id int64) *v1alpha1.BatchJob
	Partition(name string) *snapshot.Partition
	QOS(name string) *v1alpha1.QOS
	IsPreemptor(id int64) bool
	RunningJobs() iter.Seq[int64]
	SelectVictims(id int64, candidates func() []int64, started []backfill.Running) []int64
}

// Victims returns the jobs that a pending job preempts so that it can start now,
// after the jobs that the plan has started; none if it may preempt none, if others
// are being preempted for it already, or if it could not start even then.
func Victims(c Cluster, id int64, started []backfill.Running) []Victim {
	if preemptType(c) == "" || c.IsPreemptor(id) {
		return nil
	}
	byID := map[int64]Victim{}
	var all []Victim
	candidateIDs := func() []int64 {
		var ids []int64
		all = withoutPartial(candidates(c, c.Job(id)))
		for _, v := range all {
			ids = append(ids, v.Job.Spec.JobID)
			byID[v.Job.Spec.JobID] = v
		}
		return ids
	}
	var out []Victim
	for _, victim := range c.SelectVictims(id, candidateIDs, started) {
		out = append(out, byID[victim])
	}
	return withComponents(out, all)
}

// Types of preemption (slurm.conf(5), PreemptType).
const (
	byQOS               = "qos"
	byPartitionPriority = "partition_prio"
)

// preemptType returns the cluster's type of preemption; "" if there is none.
func preemptType(c Cluster) string {
	t := strings.TrimPrefix(strings.ToLower(c.Parameters().PreemptType), "preempt/")
	if t == byQOS || t == byPartitionPriority {
		return t
	}
	return ""
}

// candidates returns the running jobs that b may preempt, ordered by importance and
// then from the youngest to the oldest.
func candidates(c Cluster, b *v1alpha1.BatchJob) []Victim {
	var out []Victim
	for id := range c.RunningJobs() {
		other := c.Job(id)
		st := &other.Status
		if st.State != v1alpha1.StateRunning || st.Preempt != nil || st.StartTime == nil || other.Spec.Cancel != nil {
			continue
		}
		r, ok := ruleFor(c, b, other)
		if !ok || c.Time()-st.StartTime.Unix() < r.exemptTime {
			continue
		}
		out = append(out, Victim{Job: other, Mode: r.mode, Grace: r.grace})
	}
	slices.SortStableFunc(out, func(x, y Victim) int {
		return cmp.Or(
			cmp.Compare(importance(c, x.Job), importance(c, y.Job)),
			cmp.Compare(y.Job.Status.StartTime.UnixNano(), x.Job.Status.StartTime.UnixNano()))
	})
	return out
}

// importance orders running jobs by the tier of their partition, then by the priority
// of their QOS.
func importance(c Cluster, b *v1alpha1.BatchJob) int64 {
	n := int64(0)
	if p := c.Partition(b.Status.Partition); p != nil {
		n = int64(max(1, p.Spec.PriorityTier)) << 32
	}
	if q := c.QOS(b.Spec.Job.QOS); q != nil {
		n += q.Spec.Priority
	}
	return n
}

// rule is how one job preempts another.
type rule struct {
	mode       string
	grace      time.Duration
	exemptTime int64 // seconds that the other job must have run before
}

// ruleFor returns how b preempts other; ok is false if it may not.
func ruleFor(c Cluster, b, other *v1alpha1.BatchJob) (r rule, ok bool) {
	r = rule{mode: c.Parameters().PreemptMode, exemptTime: int64(c.Parameters().PreemptExemptTime)}
	if preemptType(c) == byQOS {
		ok = r.applyQOS(c.QOS(b.Spec.Job.QOS), c.QOS(other.Spec.Job.QOS))
	} else {
		ok = r.applyPartitions(c.Partition(b.Spec.Partition), c.Partition(other.Status.Partition))
	}
	r.mode = strings.ToUpper(r.mode)
	return r, ok && (r.mode == ModeCancel || r.mode == ModeRequeue)
}

// applyQOS sets what the QOS of the victim says, and reports whether the QOS of the
// preemptor may preempt it.
func (r *rule) applyQOS(preemptor, victim *v1alpha1.QOS) bool {
	if preemptor == nil || victim == nil || !slices.Contains(preemptor.Spec.Preempt, victim.Name) {
		return false
	}
	r.grace = time.Duration(victim.Spec.GraceTime) * time.Second
	if mode := victim.Spec.PreemptMode; mode != "" && !strings.EqualFold(mode, "cluster") {
		r.mode = mode
	}
	if victim.Spec.PreemptExempt > 0 {
		r.exemptTime = int64(victim.Spec.PreemptExempt)
	}
	return true
}

// applyPartitions sets what the partition of the victim says, and reports whether the
// partition of the preemptor has a higher tier.
func (r *rule) applyPartitions(preemptor, victim *snapshot.Partition) bool {
	if preemptor == nil || victim == nil ||
		max(1, preemptor.Spec.PriorityTier) <= max(1, victim.Spec.PriorityTier) {
		return false
	}
	r.grace = time.Duration(victim.Spec.GraceTime) * time.Second
	if victim.Spec.PreemptMode != "" {
		r.mode = victim.Spec.PreemptMode
	}
	return true
}
