package backfill

// overLimit returns the reason (AssocGrpCpuLimit and the like) for which the job must wait: that
// of the first limit that even its minimum request would exceed. It returns "" if there is none.
func (e *engine) overLimit(j *Job) string {
	for _, l := range j.Limits {
		if e.limitsLeft[l] < e.s.Limits[l].minUsage(j) {
			return e.s.Limits[l].Reason
		}
	}
	return ""
}

// minUsage returns the minimum of what the job uses of the limit.
func (l *Limit) minUsage(j *Job) int64 {
	nodes := int64(j.fewestNodes())
	switch l.Quantity {
	case QuantityBilling:
		if j.Bill != nil {
			return j.Bill(nil)
		}
		fallthrough
	case QuantityCPUs:
		return j.minTotalCPUs(nodes)
	case QuantityNodes:
		return nodes
	case QuantityMemory:
		return max(j.MemPerNode*nodes, j.MemPerCPU*j.minTotalCPUs(nodes))
	case QuantityGRES:
		each := l.count(j.GRES) * nodes
		if all := l.count(j.GRESTotal); all > 0 {
			each = min(each, max(nodes, all))
		}
		return each + l.count(j.GRESPerTask)*int64(j.tasksWanted(int(nodes)))
	}
	return 1
}

// minTotalCPUs returns the minimum number of CPUs of the job on that many nodes.
func (j *Job) minTotalCPUs(nodes int64) int64 {
	cpus := int64(j.leastCPUs()) * nodes
	if j.Overcommit {
		return cpus // the tasks share CPUs
	}
	return max(cpus, int64(j.Tasks*j.perTask()))
}

// count returns the number of units in list to which the limit applies.
func (l *Limit) count(list []GRES) int64 {
	sum := int64(0)
	for _, g := range list {
		if l.GRES == g.Name || l.GRES == g.Name+":"+g.Type {
			sum += g.Count
		}
	}
	return sum
}

// consumeLimits subtracts the job's usage from what is left of its limits.
func (e *engine) consumeLimits(j *Job, nodes []Assignment) {
	for _, l := range j.Limits {
		e.limitsLeft[l] -= e.s.Limits[l].usage(j, nodes)
	}
}

// usage returns how much of the limit the job uses with these nodes.
func (l *Limit) usage(j *Job, nodes []Assignment) int64 {
	if l.Quantity == QuantityBilling && j.Bill != nil {
		return j.Bill(nodes)
	}
	sum := int64(0)
	for i := range nodes {
		switch a := &nodes[i]; l.Quantity {
		case QuantityCPUs, QuantityBilling:
			sum += int64(a.CPUCount)
		case QuantityNodes:
			sum++
		case QuantityMemory:
			sum += a.Memory
		case QuantityGRES:
			sum += l.count(a.GRES)
		}
	}
	if l.Quantity == QuantityJobs {
		return 1
	}
	return sum
}
