package backfill

// Alignment is what a kubelet's topology manager requires of the CPUs of a pod.
type Alignment int

// The alignments.
const (
	// AlignNone: any CPUs.
	AlignNone Alignment = iota
	// AlignFewest: as few NUMA nodes as could have so many CPUs if the node were empty
	// and none were reserved (policy restricted).
	AlignFewest
	// AlignSingle: one NUMA node (policy single-numa-node).
	AlignSingle
)

// aligned reports whether the CPUs of a job with that memory on the node must be aligned. A
// kubelet aligns only pods that get CPUs of their own, those with a memory limit.
func (n *Node) aligned(memory int64) bool { return n.Alignment != AlignNone && memory > 0 }

// canAlign reports whether the kubelet would find aligned CPUs for a pod.
func (n *Node) canAlign(cpus int, taken CPUSet) bool {
	return n.fewestNUMA(cpus) > 0 && n.mostFree(taken, n.fewestNUMA(cpus)) >= cpus
}

// fewestNUMA returns the number of NUMA nodes for so many CPUs, or 0 if the policy allows none.
// As in the kubelet, reserved CPUs count, although no job gets them.
func (n *Node) fewestNUMA(cpus int) int {
	for k := 1; k <= len(n.NUMA) && (k == 1 || n.Alignment != AlignSingle); k++ {
		if max(k*n.NUMASize, n.mostFree(CPUSet{}, k)) >= cpus {
			return k
		}
	}
	return 0
}

// mostFree returns the number of CPUs that are not taken in the k NUMA nodes that have the
// most of them.
func (n *Node) mostFree(taken CPUSet, k int) int {
	_, sum := n.freest(taken, k, -1)
	return sum
}

// freest returns k NUMA nodes that have at least want CPUs together that are not taken, and
// their number: the first such node if k is 1, as the kubelet chooses, otherwise, or if there
// is none, the nodes with the most.
func (n *Node) freest(taken CPUSet, k, want int) (chosen []CPUSet, sum int) {
	free := make([]CPUSet, len(n.NUMA))
	for i := range n.NUMA {
		free[i] = n.NUMA[i].Clone()
		free[i].Subtract(taken)
		if k == 1 && want >= 0 && free[i].Len() >= want {
			return free[i : i+1], free[i].Len()
		}
	}
	for ; k > 0 && len(free) > 0; k-- {
		best := 0
		for i := range free {
			if free[i].Len() > free[best].Len() {
				best = i
			}
		}
		chosen, sum = append(chosen, free[best]), sum+free[best].Len()
		free = append(free[:best:best], free[best+1:]...)
	}
	return chosen, sum
}

// chooseAligned returns so many CPUs as the kubelet would choose them; ok is false if it
// would refuse the pod.
func (n *nodeState) chooseAligned(cpus int, forbidden CPUSet) (set CPUSet, ok bool) {
	taken := n.cores.Clone()
	taken.Union(forbidden)
	k := n.fewestNUMA(cpus)
	if k == 0 {
		return CPUSet{}, false
	}
	chosen, sum := n.freest(taken, k, cpus)
	if sum < cpus {
		return CPUSet{}, false
	}
	for _, free := range chosen {
		for _, id := range free.Members() {
			if cpus > 0 {
				set.Add(id)
				cpus--
			}
		}
	}
	return set, true
}
