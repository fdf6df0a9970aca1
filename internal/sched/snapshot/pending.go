package snapshot

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// appendPending appends a pending job in the planner's terms to the list. An
// array becomes several entries if not all of its tasks may start.
func (s *Snapshot) appendPending(list []backfill.Job, b *v1alpha1.BatchJob) []backfill.Job {
	j := &b.Spec.Job
	p := s.PartitionFor(b, b.Spec.Partition)
	info := JobInfo{Priority: requestedPriority(b), TimeLimit: job.Unlimited, Partition: b.Spec.Partition}
	out := backfill.Job{
		ID:          b.Spec.JobID,
		Begin:       earliestStart(b),
		User:        s.userNumber(b.Spec.User),
		Reservation: v1alpha1.ReservationObject(j.Reservation),
	}
	if b.Spec.SubmitTime != nil {
		out.Submit = b.Spec.SubmitTime.UnixMicro()
	}
	switch usable := s.usablePartitions(b); {
	case p == nil:
		out.Blocked = status.ReasonPartitionDown
	case len(usable) == 0:
		out.Blocked = s.blockedReason(b, p)
	default:
		p = usable[0]
		s.addChoices(&out, &info, usable, predicatesOf(j), s.magneticReservations(&out, b))
		if len(out.ChoiceReservations) > 0 {
			info.ownChoices().reservations = out.ChoiceReservations
		}
		s.restrictToPods(&out, b)
	}
	if out.Blocked == "" && !s.reservationExists(out.Reservation) {
		out.Blocked = "Reservation " + j.Reservation + " was deleted"
	}
	if len(j.Licenses) > 0 {
		out.Licenses = licenses(j)
	}
	if p != nil {
		info.Partition, info.TimeLimit = p.Name, TimeLimit(p.Spec, j)
		s.buildRequest(&out, j, p)
		out.Priority = int64(max(1, p.Spec.PriorityTier)) << 33
	}
	s.applyPolicy(&out, b, &info)
	out.Priority += info.Priority
	if s.preemptors[b.Spec.JobID] {
		out.Priority = preemptorPriority
	}
	s.setTimes(&out, b, &info)
	s.avoidRefusing(&out, b.Spec.JobID)
	info.MaxSharers = int32(out.Share)
	s.groupComponents(&out, b)
	list = s.appendTasks(list, &out, b, &info)
	s.infos[b.Spec.JobID] = info
	return list
}

// usablePartitions returns the partitions that the job names, in its order, whose
// state and limits let it start.
func (s *Snapshot) usablePartitions(b *v1alpha1.BatchJob) []*Partition {
	var out []*Partition
	for _, name := range PartitionNames(b) {
		if p := s.PartitionFor(b, name); p != nil && s.blockedReason(b, p) == "" {
			out = append(out, p)
		}
	}
	return out
}

// blockedReason returns why the job cannot be considered in the partition, by
// Slurm's name (squeue(1), JOB REASON CODES), or "".
func (s *Snapshot) blockedReason(b *v1alpha1.BatchJob, p *Partition) string {
	j := &b.Spec.Job
	if r := job.HeldReason(j.Hold); r != "" {
		return r
	}
	if r := s.dependencies.Reason(b); r != "" {
		return r
	}
	if u := s.users[b.Spec.User]; u != nil && u.Spec.Disabled {
		return status.ReasonInvalidAccount
	}
	switch strings.ToUpper(p.Spec.State) {
	case "DOWN":
		return status.ReasonPartitionDown
	case "INACTIVE":
		return "PartitionInactive"
	}
	switch {
	case p.ExceedsMaxTime(j):
		return "PartitionTimeLimit"
	case p.Spec.MaxNodes > 0 && max(j.Shape.MinNodes, 1) > p.Spec.MaxNodes:
		return "PartitionNodeLimit"
	}
	return ""
}

// requestedPriority returns the priority that the job was given directly; 0 if it
// is held or its priority is computed.
func requestedPriority(b *v1alpha1.BatchJob) int64 {
	j := &b.Spec.Job
	if j.Hold != "" || j.Priority == nil {
		return 0
	}
	return *j.Priority
}

// earliestStart returns the first second in which the job may start; 0: now.
func earliestStart(b *v1alpha1.BatchJob) int64 {
	return max(b.Spec.Job.Time.Begin, b.Status.EligibleSecond())
}

// duration returns a time limit of minutes in seconds.
func duration(limit int32) int64 {
	if limit <= 0 {
		return backfill.Forever
	}
	return int64(limit) * 60
}

// setTimes sets how long the job runs, and between which instants.
func (s *Snapshot) setTimes(out *backfill.Job, b *v1alpha1.BatchJob, info *JobInfo) {
	t := &b.Spec.Job.Time
	out.Duration = duration(info.TimeLimit)
	if t.Min > 0 {
		out.MinDuration = min(int64(t.Min)*60, out.Duration)
	}
	if out.Deadline = t.Deadline; out.Deadline > 0 && out.Duration == backfill.Forever {
		// A job without a time limit may run until its deadline, and for a minute at least.
		out.Duration = max(60, (out.Deadline-1-max(s.Now, out.Begin))/60*60)
		out.MinDuration = max(60, out.MinDuration)
		info.TimeLimit = int32(min(out.Duration/60, 1<<30))
	}
	if out.Switches > 0 {
		wait := int64(b.Spec.Job.Placement.SwitchWait())
		if b.Spec.SubmitTime != nil {
			out.SwitchesUntil = max(b.Spec.SubmitTime.Unix(), out.Begin) + wait
		}
	}
}

// groupComponents groups the components of a heterogeneous job, which start at the
// same instant or not at all. They are blocked until all of them exist and are
// pending.
func (s *Snapshot) groupComponents(out *backfill.Job, b *v1alpha1.BatchJob) {
	id := array.HetID(b)
	if id == 0 {
		return
	}
	out.Group = id
	if out.Blocked != "" {
		return
	}
	components := s.dependencies.SplitOff(id)
	leader := s.jobs[id]
	if leader == nil || len(components)+1 < int(b.Spec.Job.Het.Size) || !leader.AwaitsStart() {
		out.Blocked = backfill.ReasonPriority
		return
	}
	for _, c := range components {
		if !c.AwaitsStart() {
			out.Blocked = backfill.ReasonPriority
			return
		}
	}
}
