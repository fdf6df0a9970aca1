package coord

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// gpusWanted is how many GPUs the step asks for on each node of its layout; nil:
// it does not ask, and sees all.
func gpusWanted(s *step.Shape, l *placement.Layout) []int {
	if s.GPUs == 0 && s.GPUsPerNode == 0 && s.GPUsPerTask == 0 && !s.NoGPUs {
		return nil
	}
	want := make([]int, len(l.Nodes))
	for k := range want {
		want[k] = max(int(s.GPUsPerNode), int(s.GPUsPerTask)*len(l.Tasks[k]))
	}
	for n := range int(s.GPUs) {
		want[n%len(want)]++
	}
	return want
}

// gpus picks the GPUs of a step on each node of its layout, where their numbers
// are known. busy: it has to wait for those of other steps. c.mu is held.
func (c *Coordinator) gpus(s *step.Shape, l *placement.Layout, overlap bool) (picked [][]int, busy bool, err error) {
	want := gpusWanted(s, l)
	has := slices.ContainsFunc(l.Nodes, func(i int32) bool { return c.job.Nodes[i].HasGPUs || len(c.job.Nodes[i].GPUs) > 0 })
	switch {
	case s.MemPerGPU && !has:
		return nil, false, c.tooManyGPUs(s, 0)
	case want == nil:
		return nil, false, nil
	}
	if n := int(s.GPUs); has && n > 0 && n < len(l.Nodes) {
		return nil, false, step.Refuse(fmt.Sprintf("Step requested gres=gpu:%d is less than the requested min nodes=%d", n, len(l.Nodes)), invalidGRES(c.job.ID))
	}
	for k, i := range l.Nodes {
		all := c.job.Nodes[i].GPUs
		switch {
		case len(all) == 0 && want[k] > 0 && !c.job.Nodes[i].HasGPUs || len(all) > 0 && want[k] > len(all):
			return nil, false, c.tooManyGPUs(s, len(all))
		case len(all) == 0: // there are some, of unknown numbers
			picked = append(picked, nil)
			continue
		}
		free := all
		if !overlap {
			free = slices.DeleteFunc(slices.Clone(all), func(g int) bool { return c.takenGPUs[i][g] })
		}
		if len(free) < want[k] {
			return nil, true, nil
		}
		picked = append(picked, slices.Clone(free[:want[k]]))
	}
	return picked, false, nil
}

func (c *Coordinator) tooManyGPUs(s *step.Shape, has int) error {
	no := &step.RefusedError{}
	switch {
	case has == 0:
		no.Lines = append(no.Lines, "Step requested GRES but job doesn't have GRES")
	case s.GPUsPerTask > 0:
		return placement.Refuse(c.job.ID, placement.ReasonProcessors)
	case s.GPUsPerNode > 0:
		no.Lines = append(no.Lines, fmt.Sprintf("Step requested gres_per_node=gpu:%d is more than the job's gres_per_node=gpu:%d", s.GPUsPerNode, has))
	}
	no.Lines = append(no.Lines, invalidGRES(c.job.ID))
	return no
}

// holdGPUs marks what was picked as in use, or, with taken false, as free. c.mu
// is held.
func (c *Coordinator) holdGPUs(g *grant, taken bool) {
	for k, i := range g.layout.Nodes {
		if k >= len(g.gpus) {
			return
		}
		for _, id := range g.gpus[k] {
			if taken {
				c.takenGPUs[i][id] = true
			} else {
				delete(c.takenGPUs[i], id)
			}
		}
	}
}
