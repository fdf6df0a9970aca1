package coord

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
)

// Pool is a generic resource of the job on a node, other than GPUs. GPUs have
// indexes; the others are only counted.
type Pool struct {
	Name     string
	Type     string // empty: none
	Count    int64
	reserved int64 // by steps
}

// share is the number of units that a step reserves of a pool.
type share struct {
	pool  *Pool
	count int64
}

// selectGRES selects the generic resources of a step on each node of its layout.
// busy is true if the step must wait for other steps. With overlap the step uses
// the resources of other steps too, and reserves nothing. The caller holds c.mu.
func (c *Coordinator) selectGRES(
	s *step.Shape, l *placement.Layout, overlap bool,
) (shares []share, busy bool, err error) {
	for _, want := range s.GRES {
		for _, i := range l.Nodes {
			pools, has := c.poolsOf(i, want)
			if has < want.Count {
				return nil, false, c.refuseGRES(want, has)
			}
			left := want.Count
			for _, p := range pools {
				n := min(left, p.Count-p.reserved-selected(shares, p))
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

// selected returns the number of units already selected from a pool, as a step may name the
// same resource twice.
func selected(shares []share, p *Pool) (n int64) {
	for _, s := range shares {
		if s.pool == p {
			n += s.count
		}
	}
	return n
}

// poolsOf returns the pools of node i that match a request, and their total.
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

func (c *Coordinator) refuseGRES(want step.GRES, has int64) error {
	line := "Step requested GRES but job doesn't have GRES"
	if has > 0 {
		line = fmt.Sprintf("Step requested gres_per_node=%[1]s:%[2]d is more than the job's gres_per_node=%[1]s:%[3]d",
			want.Name, want.Count, has)
	}
	return step.Refuse(line, invalidGRES(c.job.ID))
}

func invalidGRES(job int64) string {
	return fmt.Sprintf("Unable to create step for job %d: Invalid generic resource (gres) specification", job)
}

// reserveGRES reserves the shares of a step. The caller holds the coordinator's
// mutex.
func (g *allocation) reserveGRES() {
	for _, s := range g.gres {
		s.pool.reserved += s.count
	}
}

// releaseGRES undoes reserveGRES.
func (g *allocation) releaseGRES() {
	for _, s := range g.gres {
		s.pool.reserved -= s.count
	}
}
