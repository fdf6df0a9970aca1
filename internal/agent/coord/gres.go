package coord

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// Pool is what the job has on a node of one kind of generic resource, GPUs
// apart: they have numbers, the others are counted.
type Pool struct {
	Name  string
	Type  string // empty: of no type
	Count int64
	taken int64 // by steps
}

// share is what a step takes from a pool.
type share struct {
	pool  *Pool
	count int64
}

// counted takes the generic resources of a step, on each node of its layout,
// from the pools. busy: it has to wait for those of other steps. With overlap
// it uses what others have. c.mu is held, and nothing is marked as taken.
func (c *Coordinator) counted(s *step.Shape, l *placement.Layout, overlap bool) (shares []share, busy bool, err error) {
	for _, want := range s.GRES {
		for _, i := range l.Nodes {
			pools, has := c.poolsOf(i, want)
			if has < want.Count {
				return nil, false, c.tooMuchGRES(want, has)
			}
			left := want.Count
			for _, p := range pools {
				n := min(left, p.Count-p.taken-promised(shares, p))
				if left -= n; n > 0 {
					shares = append(shares, share{p, n})
				}
			}
			if left > 0 && !overlap {
				return nil, true, nil
			}
		}
	}
	if overlap {
		return nil, false, nil
	}
	return shares, false, nil
}

// promised is what the step has been given of a pool already: it may ask twice.
func promised(shares []share, p *Pool) (n int64) {
	for _, s := range shares {
		if s.pool == p {
			n += s.count
		}
	}
	return n
}

// poolsOf are the pools of node i that a request may take from, and how much
// they have in all.
func (c *Coordinator) poolsOf(i int32, want step.GRES) (pools []*Pool, has int64) {
	for k := range c.job.Nodes[i].GRES {
		p := &c.job.Nodes[i].GRES[k]
		if p.Name == want.Name && (want.Type == "" || p.Type == want.Type) {
			pools = append(pools, p)
			has += p.Count
		}
	}
	return pools, has
}

func (c *Coordinator) tooMuchGRES(want step.GRES, has int64) error {
	line := "Step requested GRES but job doesn't have GRES"
	if has > 0 {
		line = fmt.Sprintf("Step requested gres_per_node=%[1]s:%[2]d is more than the job's gres_per_node=%[1]s:%[3]d", want.Name, want.Count, has)
	}
	return step.Refuse(line, invalidGRES(c.job.ID))
}

func invalidGRES(job int64) string {
	return fmt.Sprintf("Unable to create step for job %d: Invalid generic resource (gres) specification", job)
}

// holdGRES marks what a step takes as taken, or, with taken false, as free. c.mu
// is held.
func (g *grant) holdGRES(taken bool) {
	for _, s := range g.counted {
		if taken {
			s.pool.taken += s.count
		} else {
			s.pool.taken -= s.count
		}
	}
}
