package snapshot

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// pending adds the planner's form of a waiting job to the list, or of what waits
// of an array: several entries where not all of it may start.
func (v *View) pending(to []backfill.Job, b *v1alpha1.BatchJob) []backfill.Job {
	j := &b.Spec.Job
	p := v.partitionOf(b, b.Spec.Partition)
	w := Wanted{Priority: priorityOf(b), TimeLimit: job.Unlimited, Partition: b.Spec.Partition}
	out := backfill.Job{ID: b.Spec.JobID, Begin: earliest(b), User: v.userNumber(b.Spec.User), Reservation: v1alpha1.ReservationObject(j.Reservation)}
	if b.Spec.SubmitTime != nil {
		out.Submit = b.Spec.SubmitTime.UnixMicro()
	}
	switch usable := v.usable(b); {
	case p == nil:
		out.Blocked = "PartitionDown"
	case len(usable) == 0:
		out.Blocked = v.blocked(b, p)
	default:
		p = usable[0]
		v.addChoices(&out, &w, usable, wishes{&j.Placement, j.Shape.TmpDisk}, v.attract(&out, b))
		w.Inside = out.ChoiceReservations
		v.suit(&out, b)
	}
	if out.Blocked == "" && !v.reserved(out.Reservation) {
		out.Blocked = "Reservation " + j.Reservation + " was deleted"
	}
	if len(j.Licenses) > 0 {
		out.Licenses = licenses(j)
	}
	if p != nil {
		w.Partition, w.TimeLimit = p.name, p.timeLimit(j)
		v.fill(&out, j, p)
		out.Priority = int64(max(1, p.spec.PriorityTier)) << 33
	}
	v.judge(&out, b, &w)
	out.Priority += w.Priority
	if v.expected[b.Spec.JobID] {
		out.Priority = aheadOfAll
	}
	v.fillTime(&out, b, &w)
	w.Sharers = out.Share
	v.together(&out, b)
	to = v.tasks(to, &out, b, &w)
	v.wanted[b.Spec.JobID] = w
	return to
}

// usable are the partitions that the job names, in its order, and could start
// in as far as the partitions themselves go.
func (v *View) usable(b *v1alpha1.BatchJob) []*partition {
	names := b.Spec.Job.Partitions
	if len(names) == 0 {
		names = []string{b.Spec.Partition}
	}
	var out []*partition
	for _, name := range names {
		if p := v.partitionOf(b, name); p != nil && v.blocked(b, p) == "" {
			out = append(out, p)
		}
	}
	return out
}

func priorityOf(b *v1alpha1.BatchJob) int64 {
	switch j := &b.Spec.Job; {
	case j.Hold != "":
		return 0
	case j.Priority != nil:
		return *j.Priority
	default:
		return 0 // computed
	}
}

// earliest is the first second the job may start in; 0: at once.
func earliest(b *v1alpha1.BatchJob) int64 {
	t := b.Spec.Job.Time.Begin
	if e := b.Status.EligibleTime; e != nil && e.Unix() > t {
		t = e.Unix()
	}
	return t
}

// duration in seconds of a limit in minutes.
func duration(limit int32) int64 {
	if limit <= 0 {
		return backfill.Forever
	}
	return int64(limit) * 60
}

// fill sets what j wants of nodes, CPUs, memory and generic resources.
func (v *View) fill(out *backfill.Job, j *job.Job, p *partition) {
	s, pl := &j.Shape, &j.Placement
	out.Partition = p.number
	if out.Eligible == nil {
		v.addChoices(out, nil, []*partition{p}, wishes{pl, s.TmpDisk}, nil)
	}
	for _, name := range pl.NodeList {
		if i, ok := v.byName[name]; ok {
			out.Required = append(out.Required, i)
		}
	}
	out.MinNodes = max(1, int(s.MinNodes), int(p.spec.MinNodes), len(pl.NodeList))
	out.MaxNodes = int(s.MaxNodes)
	if most := int(p.spec.MaxNodes); most > 0 && out.MaxNodes > most {
		out.MaxNodes = max(most, out.MinNodes)
	}
	out.Tasks, out.TasksPerNode = int(s.Tasks), int(s.TasksPerNode)
	out.ExactPerNode = s.Tasks == 0 && s.TasksPerNode > 0
	out.CPUsPerTask, out.MinCPUs = int(s.CPUsPerTask), int(s.MinCPUs)
	if out.Overcommit = s.Overcommit; s.Overcommit {
		out.MinCPUs = 0
	}
	out.Exclusive = pl.Exclusive != "" && pl.Exclusive != "user" || strings.EqualFold(p.spec.OverSubscribe, "EXCLUSIVE")
	out.UserExclusive = pl.Exclusive == "user" || p.spec.ExclusiveUser
	out.Share = sharers(p, pl.OverSubscribe)
	fillLayout(out, s, pl)
	v.spreadGPUs(out, s, p)
	fillGRES(out, s)
	for _, g := range out.GRES { // as many tasks on a node as its GPUs are for
		if most := int(g.Count) * int(s.TasksPerGPU); g.Name == "gpu" && most > 0 && !out.ExactPerNode && (out.TasksPerNode == 0 || most < out.TasksPerNode) {
			out.TasksPerNode = most
		}
	}
	v.fillMemory(out, s, p)
}

// fillGRES turns every scope into one that the planner knows.
func fillGRES(out *backfill.Job, s *job.Shape) {
	for _, g := range s.GRES {
		r := backfill.GRES{Name: g.Name, Type: g.Type, Count: g.Count}
		switch g.Per {
		case job.PerTask:
			out.GRESPerTask = addGRES(out.GRESPerTask, []backfill.GRES{r})
			continue
		case job.PerJob:
			if !alone(s.GRES, g) {
				continue // the other scope says what each node or task has
			}
			n := int64(max(1, out.MinNodes))
			r.Count = (g.Count + n - 1) / n
			out.GRESTotal = append(out.GRESTotal, backfill.GRES{Name: g.Name, Type: g.Type, Count: g.Count})
			out.MaxNodes = min(out.MaxNodes, max(int(g.Count), out.MinNodes))
		case job.PerSocket:
			r.Count *= int64(max(1, s.SocketsPerNode))
		}
		out.GRES = addGRES(out.GRES, []backfill.GRES{r})
		if s.CPUsPerGPU > 0 && g.Name == "gpu" {
			out.MinCPUs = max(out.MinCPUs, int(r.Count)*int(s.CPUsPerGPU))
		}
	}
}

// alone tells whether nothing else of list is about what g asks for.
func alone(list []job.GRES, g job.GRES) bool {
	return !slices.ContainsFunc(list, func(o job.GRES) bool { return o != g && o.Name == g.Name })
}

// fillMemory sets the memory asked for, or the partition's or cluster's default.
func (v *View) fillMemory(out *backfill.Job, s *job.Shape, p *partition) {
	part, cluster := p.spec.MemoryLimits, v.params.MemoryLimits
	switch {
	case s.MemPerNode != nil:
		out.MemPerNode, out.AllMemory = *s.MemPerNode, *s.MemPerNode == 0
	case s.MemPerCPU != nil:
		out.MemPerCPU = *s.MemPerCPU
	case s.MemPerGPU != nil:
		for _, g := range out.GRES {
			if g.Name == "gpu" {
				out.MemPerNode += *s.MemPerGPU * g.Count
			}
		}
	case part.DefMemPerCPU != nil:
		out.MemPerCPU = *part.DefMemPerCPU
	case part.DefMemPerNode != nil:
		out.MemPerNode = *part.DefMemPerNode
	case cluster.DefMemPerCPU != nil:
		out.MemPerCPU = *cluster.DefMemPerCPU
	case cluster.DefMemPerNode != nil:
		out.MemPerNode = *cluster.DefMemPerNode
	}
}
