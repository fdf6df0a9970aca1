package backfill

import "math/bits"

// freeCores returns, for each socket of the node, the cores that no running job has and
// that are not forbidden, in ascending order.
func (n *nodeState) freeCores(forbidden CPUSet) [][]int {
	threads, sockets := n.threads(), n.sockets()
	cores := n.CPUs / threads
	each := max(1, cores/sockets)
	out, all, socket, begin := make([][]int, sockets), make([]int, 0, cores), 0, 0
	for c := range cores {
		free := true
		for t := range threads {
			free = free && !n.cores.Has(c*threads+t) && !forbidden.Has(c*threads+t)
		}
		if free {
			if s := min(c/each, sockets-1); s != socket {
				socket, begin = s, len(all)
			}
			all = append(all, c)
			out[socket] = all[begin:]
		}
	}
	return out
}

// chooseCPUs returns a.CPUCount CPUs of the node for the job, in whole cores
// that are not forbidden. ok is false if no choice meets the job's request for
// sockets.
func (e *engine) chooseCPUs(n *nodeState, j *Job, a *Assignment, forbidden CPUSet) (set CPUSet, ok bool) {
	if j.sharers() > 1 && e.oversubscribes {
		return chooseSharedCPUs(n, e.minSharers, a)
	}
	if n.aligned(a.Memory) {
		return n.chooseAligned(a.CPUCount, forbidden)
	}
	threads := n.threads()
	if threads == 1 && n.sockets() == 1 && j.TasksPerSocket == 0 {
		return n.firstFree(a.CPUCount, forbidden)
	}
	want := (a.CPUCount + threads - 1) / threads
	free := n.freeCores(forbidden)
	if j.TasksPerSocket > 0 {
		most := (j.TasksPerSocket*j.perTask() + threads - 1) / threads
		for s := range free {
			free[s] = free[s][:min(len(free[s]), most)]
		}
	}
	for want > 0 {
		before := want
		for s := range free {
			n := 1
			if j.CoreDistribution == CoresBlock {
				n = want
			}
			for ; n > 0 && want > 0 && len(free[s]) > 0; n-- {
				set.AddRange(free[s][0]*threads, (free[s][0]+1)*threads)
				free[s] = free[s][1:]
				want--
			}
		}
		if want == before {
			return CPUSet{}, false
		}
	}
	return set, true
}

// firstFree is chooseCPUs for nodes with one socket and one thread per core.
func (n *nodeState) firstFree(want int, forbidden CPUSet) (set CPUSet, ok bool) {
	set.words = make([]uint64, 0, (n.CPUs+63)/64)
	for w := 0; want > 0 && w*64 < n.CPUs; w++ {
		x := ^(n.cores.word(w) | forbidden.word(w))
		if last := n.CPUs - w*64; last < 64 {
			x &= 1<<last - 1
		}
		over := bits.OnesCount64(x) - want
		for ; over > 0; over-- {
			x &^= 1 << (63 - bits.LeadingZeros64(x))
		}
		set.words = append(set.words, x)
		want -= bits.OnesCount64(x)
	}
	return set, want <= 0
}

// chooseSharedCPUs returns CPUs for a job that shares them: first those with the most
// sharing jobs that can have one more, then free ones.
func chooseSharedCPUs(n *nodeState, share int, a *Assignment) (CPUSet, bool) {
	var set CPUSet
	for load, left := share-1, a.CPUCount; left > 0 && load >= 0; load-- {
		for c := range n.CPUs {
			if left > 0 && n.sharersOf(c) == load && (load > 0 || !n.cores.Has(c)) {
				set.Add(c)
				left--
			}
		}
	}
	return set, set.Len() == a.CPUCount
}

func (n *nodeState) sharersOf(cpu int) int {
	if cpu < len(n.sharers) {
		return n.sharers[cpu]
	}
	return 0
}

// updateCPUs adds the CPUs to those of running jobs, or with sign -1 removes
// them.
func (n *nodeState) updateCPUs(cpus CPUSet, share bool, sign int) {
	if share {
		for _, c := range cpus.Members() {
			for len(n.sharers) <= c {
				n.sharers = append(n.sharers, 0)
			}
			if n.sharers[c] += sign; n.sharers[c] > 0 {
				n.cores.Add(c)
			} else {
				n.cores.Remove(c)
			}
		}
		return
	}
	if sign > 0 {
		n.cores.Union(cpus)
	} else {
		n.cores.Subtract(cpus)
	}
}

// releaseCPUs undoes assignCPUs.
func (e *engine) releaseCPUs(nodes []Assignment, share bool) {
	for i := range nodes {
		e.nodes[nodes[i].Node].updateCPUs(nodes[i].CPUs, share, -1)
	}
}

// assignCPUs chooses the CPUs of the assignments of a job that runs in the
// reservation until end. It reports false if there are none that meet the
// request.
func (e *engine) assignCPUs(j *Job, nodes []Assignment, reservation string, end int64) bool {
	for i := range nodes {
		n := &e.nodes[nodes[i].Node]
		set, ok := e.chooseCPUs(n, j, &nodes[i], e.forbidden(n, reservation, end))
		if !ok {
			return false
		}
		nodes[i].CPUs = set
	}
	for i := range nodes {
		e.nodes[nodes[i].Node].updateCPUs(nodes[i].CPUs, j.sharers() > 1, 1)
	}
	return true
}
