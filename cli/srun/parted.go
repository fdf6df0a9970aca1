package srun

import (
	"context"
	"strconv"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// partedJob is what is to be known of a job in whose parts a step is to be.
type partedJob struct {
	size  int      // components; 0: it has none
	ids   []int64  // of the components; nil: the environment says which they are
	nodes []string // of the job, where it has no components
}

// parted is what the environment says of the job that srun is in, and the
// cluster of another.
func (o *Options) parted(ctx context.Context, id int64) (*partedJob, error) {
	j := &partedJob{}
	if o.p.Env("SLURM_JOB_ID") != strconv.FormatInt(id, 10) {
		return o.askParted(ctx, id)
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

func (o *Options) askParted(ctx context.Context, id int64) (*partedJob, error) {
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
		return nil, unattached(id, err)
	case w == nil: // which attaching to it says better
		return &partedJob{}, nil
	}
	j := &partedJob{size: len(w.Het)}
	for _, c := range w.Het {
		j.ids = append(j.ids, c.JobID)
	}
	for _, h := range w.Hosts {
		j.nodes = append(j.nodes, h.Name)
	}
	return j, nil
}

// share gives the parts of a step the nodes of a job that has no components,
// one after the other.
func share(parts []*option.Parsed, nodes []string) error {
	used := 0
	for _, p := range parts {
		want := 1
		if p.Given["nodes"].From == option.FromCommandLine {
			want = int(max(p.Job.Shape.MinNodes, 1))
		}
		if used+want > len(nodes) {
			return slurmerr.Newf(slurmerr.Refused, "Allocation failure of %d nodes: job size of %d, already allocated %d nodes to previous components.",
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
