package coord

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// wantedGPUs returns how many GPUs the step requests on each node of its layout, or nil if
// it requests no number and thus sees all GPUs of the job.
func wantedGPUs(s *step.Shape, l *placement.Layout) []int {
	if s.GPUs == 0 && s.GPUsPerNode == 0 && s.GPUsPerTask == 0 && !s.NoGPUs {
		return nil
	}
	want := make([]int, len(l.Nodes))
	for k := range want {
		want[k] = max(int(s.GPUsPerNode), int(s.GPUsPerTask)*len(l.Tasks[k]))
	}
	if s.GPUsPerTask == 0 && s.GPUsPerNode == 0 { // otherwise GPUs is their sum
		for n := range int(s.GPUs) {
			want[n%len(want)]++
		}
	}
	return want
}

// selectGPUs selects the GPUs of a step on each node of its layout, if their
// indexes are known. busy is true if the step must wait for other steps. The
// caller holds c.mu.
func (c *Coordinator) selectGPUs(
	s *step.Shape, l *placement.Layout, overlap bool,
) (selected [][]int, busy bool, err error) {
	want := wantedGPUs(s, l)
	hasGPUs := slices.ContainsFunc(l.Nodes, func(i int32) bool {
		return c.job.Nodes[i].HasGPUs || len(c.job.Nodes[i].GPUs) > 0
	})
	switch {
	case s.MemPerGPU && !hasGPUs:
		return nil, false, c.refuseGPUs(s, 0)
	case want == nil:
		return nil, false, nil
	}
	if n := int(s.GPUs); hasGPUs && n > 0 && n < len(l.Nodes) {
		return nil, false, step.Refuse(
			fmt.Sprintf("Step requested gres=gpu:%d is less than the requested min nodes=%d", n, len(l.Nodes)),
			invalidGRES(c.job.ID))
	}
	for k, i := range l.Nodes {
		node := &c.job.Nodes[i]
		all := node.GPUs
		missing := len(all) == 0 && want[k] > 0 && !node.HasGPUs
		tooMany := len(all) > 0 && want[k] > len(all)
		switch {
		case missing || tooMany:
			return nil, false, c.refuseGPUs(s, len(all))
		case len(all) == 0: // the node has GPUs with unknown indexes
			selected = append(selected, nil)
			continue
		}
		free := all
		if !overlap {
			free = slices.DeleteFunc(slices.Clone(all), func(g int) bool { return c.reservedGPUs[i][g] })
		}
		if len(free) < want[k] {
			return nil, true, nil
		}
		selected = append(selected, slices.Clone(free[:want[k]]))
	}
	return selected, false, nil
}

// refuseGPUs returns the error of a step that requests more GPUs than the job
// has.
func (c *Coordinator) refuseGPUs(s *step.Shape, has int) error {
	switch {
	case has == 0:
		return step.Refuse("Step requested GRES but job doesn't have GRES", invalidGRES(c.job.ID))
	case s.GPUsPerTask > 0:
		return placement.Refuse(c.job.ID, placement.ReasonProcessors)
	case s.GPUsPerNode > 0:
		return step.Refuse(
			fmt.Sprintf(
				"Step requested gres_per_node=gpu:%d is more than the job's gres_per_node=gpu:%d",
				s.GPUsPerNode,
				has,
			),
			invalidGRES(c.job.ID),
		)
	}
	return step.Refuse(invalidGRES(c.job.ID))
}

// reserveGPUs reserves the GPUs of a step, unless it shares them. The caller
// holds c.mu.
func (c *Coordinator) reserveGPUs(g *allocation) {
	c.eachGPU(g, func(node int32, id int) { c.reservedGPUs[node][id] = true })
}

// releaseGPUs undoes reserveGPUs.
func (c *Coordinator) releaseGPUs(g *allocation) {
	c.eachGPU(g, func(node int32, id int) { delete(c.reservedGPUs[node], id) })
}

func (c *Coordinator) eachGPU(g *allocation, fn func(node int32, id int)) {
	if g.shared || len(g.gpus) == 0 {
		return
	}
	for k, node := range g.layout.Nodes {
		for _, id := range g.gpus[k] {
			fn(node, id)
		}
	}
}
