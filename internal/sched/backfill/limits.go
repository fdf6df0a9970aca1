package backfill

// overLimit returns the reason of the first limit that the job would exceed
// even with the least that it asks for, or "".
func (e *engine) overLimit(j *Job) string {
	for _, l := range j.Limits {
		if e.limitsLeft[l] < e.s.Limits[l].minUsage(j) {
			return e.s.Limits[l].Reason
		}
	}
	return ""
}

// minUsage returns how much of the limit the job uses at least.
func (l *Limit) minUsage(j *Job) int64 {
	nodes := int64(j.fewestNodes())
	switch l.Quantity {
	case QuantityBilling:
		if j.Bill != nil {
			return j.Bill(nil)
		}
		fallthrough
	case QuantityCPUs:
		return max(int64(j.leastCPUs())*nodes, int64(j.Tasks*j.perTask()))
	case QuantityNodes:
		return nodes
	case QuantityMemory:
		return max(j.MemPerNode*nodes, j.MemPerCPU*max(int64(j.leastCPUs())*nodes, int64(j.Tasks*j.perTask())))
	case QuantityGRES:
		each := l.count(j.GRES) * nodes
		if all := l.count(j.GRESTotal); all > 0 {
			each = min(each, max(nodes, all))
		}
		return each + l.count(j.GRESPerTask)*int64(j.tasksWanted(int(nodes)))
	}
	return 1
}

// count returns how many units of list the limit counts.
func (l *Limit) count(list []GRES) int64 {
	sum := int64(0)
	for _, g := range list {
		if l.GRES == g.Name || l.GRES == g.Name+":"+g.Type {
			sum += g.Count
		}
	}
	return sum
}

// drawLimits reduces what is left of the job's limits.
func (e *engine) drawLimits(j *Job, nodes []Assignment) {
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
