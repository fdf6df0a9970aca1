package limits

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// Asked is what a submission asks for, as far as it says.
func Asked(j *job.Job, user, partition string) Use {
	s := &j.Shape
	nodes := max(s.MinNodes, int32(len(j.Placement.NodeList)), 1)
	tasks := s.Tasks
	if tasks == 0 {
		tasks = nodes * max(s.TasksPerNode, 1)
	}
	cpus := max(tasks*max(s.CPUsPerTask, 1), nodes*max(s.MinCPUs, 1))
	u := Use{Account: j.Account, User: user, QOS: j.QOS, Partition: partition, Nodes: int64(nodes), CPUs: int64(cpus)}
	switch {
	case s.MemPerNode != nil:
		u.Memory = *s.MemPerNode * int64(nodes)
	case s.MemPerCPU != nil:
		u.Memory = *s.MemPerCPU * int64(cpus)
	}
	for _, g := range s.GRES {
		n := g.Count
		switch g.Per {
		case job.PerNode:
			n *= int64(nodes)
		case job.PerTask:
			n *= int64(tasks)
		}
		addTo(&u.GRES, map[string]int64{g.Name: n}, 1)
	}
	for _, l := range j.Licenses {
		addTo(&u.Licenses, map[string]int64{l.Name: int64(l.Count)}, 1)
	}
	if j.Time.Limit > 0 {
		u.Minutes = int64(j.Time.Limit)
	}
	return u
}

// Denied tells whether a QOS with the flag DenyOnLimit refuses the job for its
// size or time at submission. A time limit that is not given yet is no reason.
func (c *Checker) Denied(u *Use) bool {
	deny := func(q *v1alpha1.QOS) bool {
		return Flagged(q, "DenyOnLimit")
	}
	strict := false
	j := judging{Checker: c, u: u, seen: map[string]bool{}}
	for _, name := range c.qosOf(u) {
		q := c.qos[name]
		if !deny(q) {
			continue
		}
		strict = true
		l := &q.Spec.Limits
		if j.perJob(l.MaxTRES, "max", qosMax) != "" || j.perNode(l.MaxTRESPerNode, "maxNode", qosMaxNode) != "" ||
			j.perJobMinutes(l.MaxTRESMins, "maxMins", qosMaxMins) != "" || j.atLeast(l.MinTRES) != "" ||
			u.Minutes > 0 && j.wall(l.MaxWall, "QOSMaxWallDurationPerJobLimit") != "" ||
			j.perJob(l.GrpTRES, "grp", qosGrp) != "" || j.perJob(l.MaxTRESUser, "user", qosUser) != "" {
			return true
		}
	}
	if !strict {
		return false
	}
	e := nearest(j.levels())
	return j.perJob(e.MaxTRES, "max", assocMax) != "" || j.perNode(e.MaxTRESPerNode, "maxNode", assocMaxNode) != "" ||
		j.perJobMinutes(e.MaxTRESMins, "maxMins", assocMaxMins) != "" ||
		u.Minutes > 0 && j.wall(e.MaxWall, "AssocMaxWallDurationPerJobLimit") != ""
}
