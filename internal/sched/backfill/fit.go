package backfill

import "slices"

// choices returns the number of node sets among which the job's nodes are
// chosen.
func (j *Job) choices() int { return 1 + len(j.Alternatives) }

// perTask returns the CPUs of one task.
func (j *Job) perTask() int { return max(1, j.CPUsPerTask) }

// tasksWanted returns the number of tasks on n nodes.
func (j *Job) tasksWanted(n int) int {
	switch {
	case j.ExactPerNode:
		return n * max(1, j.TasksPerNode)
	case j.Tasks > 0:
		return j.Tasks
	default:
		return n
	}
}

// fewestNodes returns the minimum number of nodes of the job.
func (j *Job) fewestNodes() int {
	n := max(1, j.MinNodes, len(j.Required))
	if j.Tasks > 0 && j.TasksPerNode > 0 {
		n = max(n, (j.Tasks+j.TasksPerNode-1)/j.TasksPerNode)
	}
	parts := 0
	for i := range j.ConstraintCounts {
		parts += j.ConstraintCounts[i].Count
	}
	return max(n, parts)
}

// cpusFor returns the number of CPUs that the given number of tasks needs on node n.
func (j *Job) cpusFor(n *nodeState, tasks int) int {
	threads := n.threads()
	cpus := tasks * j.perTask()
	if j.Overcommit {
		cpus = j.perTask()
	}
	if j.NoMultithread {
		cpus *= threads
	}
	if j.TasksPerCore > 0 && !j.Overcommit {
		cpus = max(cpus, (tasks+j.TasksPerCore-1)/j.TasksPerCore*threads)
	}
	cpus = roundUp(max(cpus, j.MinCPUs), threads)
	if j.Exclusive {
		cpus = max(cpus, int(n.cpus))
	}
	return cpus
}

// leastCPUs returns the minimum number of CPUs of the job on any node.
func (j *Job) leastCPUs() int32 {
	least := j.perTask()
	if j.ExactPerNode && !j.Overcommit {
		least *= max(1, j.TasksPerNode)
	}
	return int32(max(least, j.MinCPUs))
}

// memoryFor returns the memory in MiB that the job needs on node n with the given number
// of CPUs.
func (j *Job) memoryFor(n *nodeState, cpus int) int64 {
	switch {
	case j.AllMemory:
		return n.Memory - n.UsedMemory
	case j.MemPerCPU > 0:
		return j.MemPerCPU * int64(cpus)
	default:
		return j.MemPerNode
	}
}

// fits reports whether the given number of the job's tasks fits into the offer of node n.
func (j *Job) fits(n *nodeState, o *offer, tasks int) bool {
	if j.Exclusive && !o.whole {
		return false
	}
	cpus := j.cpusFor(n, tasks)
	memory := j.memoryFor(n, cpus)
	if cpus > o.cpus || memory > o.memory {
		return false
	}
	if n.aligned(memory) && !n.canAlign(cpus, o.taken) {
		return false
	}
	_, ok := j.gresFor(o, j.GRES, tasks)
	return ok
}

// gresFor returns the generic resources of a node with the given number of tasks: each, and
// GRESPerTask for every task. ok is false if the offer has too few.
func (j *Job) gresFor(o *offer, each []GRES, tasks int) ([]GRES, bool) {
	if len(each) == 0 && len(j.GRESPerTask) == 0 {
		return nil, true
	}
	node, ok := allocateGRES(o.gres, each, 1)
	if !ok {
		return nil, false
	}
	rest := subtractGRES(append([]GRES(nil), o.gres...), node)
	tasked, ok := allocateGRES(rest, j.GRESPerTask, int64(tasks))
	return append(node, tasked...), ok
}

// capacity returns the largest number of tasks of the job that the node can
// run, or 0.
func (j *Job) capacity(n *nodeState, o *offer) int {
	if !j.fits(n, o, 1) || j.Overcommit && j.TasksPerNode > n.CPUs {
		return 0
	}
	most := max(j.Tasks, j.TasksPerNode, 1) // with Overcommit CPUs do not limit the tasks
	if !j.Overcommit {
		most = o.cpus / j.perTask()
	}
	if j.TasksPerNode > 0 {
		most = min(most, j.TasksPerNode)
	}
	if j.TasksPerSocket > 0 && !j.Overcommit {
		most = min(most, j.TasksPerSocket*n.sockets())
	}
	if j.Tasks > 0 {
		most = min(most, j.Tasks)
	}
	lo, hi := 1, max(1, most) // fits(lo) holds; fits is monotone
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if j.fits(n, o, mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if j.ExactPerNode && lo < j.TasksPerNode {
		return 0
	}
	return lo
}

// enough reports whether pick would choose the first n candidates, which can run sum tasks
// in total, so that no further node needs to be considered.
func (j *Job) enough(n, sum int) bool {
	fewest := j.fewestNodes()
	if len(j.Required) > 0 || j.MaxNodes > fewest || n < fewest || (j.MaxNodes > 0 && n > j.MaxNodes) {
		return false
	}
	return sum >= j.tasksWanted(n)
}

// prefersOne reports whether the job requests no number of nodes, so that it is placed on
// a single node if one can run all of its tasks, even if it is not the first. Slurm does
// the same.
func (j *Job) prefersOne() bool {
	return j.Tasks > 1 && j.MaxNodes == 0 && !j.SpreadJob && !j.ExactPerNode &&
		len(j.Required)+len(j.ConstraintCounts) == 0 &&
		j.fewestNodes() == 1
}

// choose returns the chosen candidates with their tasks, or nil if no choice satisfies the
// job.
func (e *engine) choose(s *requestShape, j *Job, in interval, all []candidate) []Assignment {
	if len(all) < s.leastNodes {
		return nil
	}
	var chosen []candidate
	limit := e.leafLimit(j, in)
	switch {
	case len(s.ConstraintCounts) > 0:
		chosen = e.pickCountsByTopology(s, all, limit)
	case s.Segment > 0:
		chosen = e.pickSegments(s, all)
	case s.Contiguous:
		chosen = e.pickContiguous(s, e.inPositionOrder(all))
	case e.mayUseLeaves(s):
		chosen = e.pickByTopology(s, all, limit)
	default:
		chosen = s.pick(all)
	}
	if chosen == nil || limit < len(chosen) && e.countLeaves(chosen) > limit {
		return nil
	}
	return e.assign(s, in, e.inRankOrder(s, chosen))
}

// pick returns the nodes for the job: a single one if the job prefers that, else the
// required ones and then others by node number. If those cannot run all tasks, it returns
// the ones with the highest capacity.
func (j *Job) pick(all []candidate) []candidate {
	if j.prefersOne() {
		if i := slices.IndexFunc(all, func(c candidate) bool { return c.tasks >= j.Tasks }); i >= 0 {
			return all[i : i+1]
		}
	}
	all, ok := j.requiredFirst(all)
	if !ok {
		return nil
	}
	fewest, most := j.fewestNodes(), len(all)
	if j.MaxNodes > 0 {
		most = min(most, j.MaxNodes)
	}
	if len(all) < fewest || most < fewest {
		return nil
	}
	n := j.countNodes(all, fewest, most)
	if n == 0 {
		all = byCapacity(all, len(j.Required))
		if n = j.countNodes(all, fewest, most); n == 0 {
			return nil
		}
	}
	return all[:n]
}

// countNodes returns how many of the first candidates the job gets, or 0 if no number from
// fewest to most is enough.
func (j *Job) countNodes(all []candidate, fewest, most int) int {
	if (j.MaxNodes > fewest || j.SpreadJob) && !j.UseMinNodes {
		// A range: as many as possible, but none without a task.
		for n := min(most, max(fewest, j.tasksWanted(most))); n >= fewest; n-- {
			if totalTasks(all[:n]) >= j.tasksWanted(n) {
				return n
			}
		}
		return 0
	}
	sum := totalTasks(all[:fewest])
	for n := fewest; ; n++ {
		if sum >= j.tasksWanted(n) {
			return n
		}
		if n == most {
			return 0
		}
		sum += all[n].tasks
	}
}

// totalTasks returns the number of tasks that the candidates can run together.
func totalTasks(c []candidate) int {
	sum := 0
	for i := range c {
		sum += c[i].tasks
	}
	return sum
}

// assign distributes the tasks over the nodes as Slurm does for a batch job: one on each
// node, then in blocks in node order, whatever distribution steps use.
func (e *engine) assign(s *requestShape, in interval, chosen []candidate) []Assignment {
	left := s.tasksWanted(len(chosen))
	out := e.assignments(len(chosen), in)
	inAll := slices.Clone(s.GRESTotal)
	for i := range chosen {
		c := &chosen[i]
		tasks := min(c.tasks, max(1, left-(len(chosen)-i-1)))
		if (s.SpreadJob || s.Overcommit) && !s.ExactPerNode {
			tasks = min(tasks, evenly(left, chosen[i:]))
		}
		left -= tasks
		n := &e.nodes[c.node]
		cpus := s.cpusFor(n, tasks)
		gres, _ := s.gresFor(&c.offer, shareOf(s.GRES, inAll, len(chosen)-i-1), tasks)
		if s.Exclusive {
			gres = n.wholeGRES()
		}
		out[i] = Assignment{Node: c.node, Tasks: tasks, CPUCount: cpus, Memory: s.memoryFor(n, cpus), GRES: gres}
	}
	return out
}

// evenly returns the number of tasks on the first of the nodes when left tasks are spread
// evenly over all of them. Tasks that do not fit on a node go to the others.
func evenly(left int, nodes []candidate) int {
	for share := (left + len(nodes) - 1) / len(nodes); ; share++ {
		sum := 0
		for i := range nodes {
			sum += min(share, nodes[i].tasks)
		}
		if sum >= left || share >= left {
			return max(1, share)
		}
	}
}

// sharers returns how many jobs may use a CPU of the job at the same time.
func (j *Job) sharers() int {
	if j.Exclusive {
		return 1
	}
	return max(1, j.Share)
}

func (r *Running) sharers() int {
	if r.Exclusive {
		return 1
	}
	return max(1, r.Share)
}
