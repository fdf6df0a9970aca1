package srun

import (
	"context"
	"strconv"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// jobComponents describes the components of a job over which a step runs.
type jobComponents struct {
	size  int      // number of components; 0: none
	ids   []int64  // of the components; nil: they are in the environment
	nodes []string // of a job without components
}

// components returns the components of a job: from the environment if srun runs in
// it, otherwise from the cluster.
func (o *Options) components(ctx context.Context, id int64) (*jobComponents, error) {
	j := &jobComponents{}
	if o.p.Env("SLURM_JOB_ID") != strconv.FormatInt(id, 10) {
		return o.componentsOfOther(ctx, id)
	}
	if size, err := strconv.Atoi(o.p.Env("SLURM_HET_SIZE")); err == nil && size > 0 {
		j.size = size
		return j, nil
	}
	nodes, err := hostlist.Expand(o.p.Env("SLURM_JOB_NODELIST"))
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	j.nodes = nodes
	return j, nil
}

// componentsOfOther returns the components of a job outside of which srun runs.
func (o *Options) componentsOfOther(ctx context.Context, id int64) (*jobComponents, error) {
	cluster, err := o.cluster()
	if err != nil {
		return nil, err
	}
	var w *wire.Welcome
	err = cluster.Events(ctx, id, false, func(e *wire.JobEvent) bool {
		w = e.Welcome
		return false
	})
	switch {
	case err != nil:
		return nil, attachError(id, err)
	case w == nil: // attaching reports the reason
		return &jobComponents{}, nil
	}
	j := &jobComponents{size: len(w.Het)}
	for _, c := range w.Het {
		j.ids = append(j.ids, c.JobID)
	}
	for _, h := range w.Hosts {
		j.nodes = append(j.nodes, h.Name)
	}
	return j, nil
}

// shareNodes divides the nodes of a job without components among the parts of a
// step, in order.
func shareNodes(parts []*option.Parsed, nodes []string) error {
	used := 0
	for _, p := range parts {
		want := 1
		if p.Given["nodes"].From == option.FromCommandLine {
			want = int(max(p.Job.Shape.MinNodes, 1))
		}
		if used+want > len(nodes) {
			return slurmerr.Newf(slurmerr.Refused,
				"Allocation failure of %d nodes: job size of %d, already allocated %d nodes to previous components.",
				want, len(nodes), used)
		}
		p.Job.Placement.NodeList = nodes[used : used+want]
		p.Job.Shape.MinNodes, p.Job.Shape.MaxNodes = int32(want), int32(want)
		if p.Given["ntasks"].From != option.FromCommandLine {
			p.Job.Shape.Tasks = 0
		}
		used += want
	}
	return nil
}
