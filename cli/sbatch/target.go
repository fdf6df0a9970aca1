package sbatch

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// target is where the job goes: to which cluster by name (-M), and as which
// user (--uid), where that is not the caller.
type target struct {
	cluster   string // "" without -M
	namespace string // "" for the caller's own
}

// aim finds out where the job goes. Without -M and --uid nothing is asked.
func (o *Options) aim(ctx context.Context, cluster Cluster) (t target, err error) {
	c := o.submission.Client
	if c.Clusters != "" {
		if t.cluster, err = cluster.Cluster(ctx, strings.Split(c.Clusters, ",")); err != nil {
			return t, err
		}
	}
	if c.AsUser == "" {
		return t, nil
	}
	owner, err := cluster.Owner(ctx, c.AsUser)
	switch {
	case err != nil:
		return t, err
	case owner == nil:
		return t, slurmerr.New(slurmerr.BadValue, "Invalid --uid specification")
	}
	t.namespace = owner.Namespace
	return t, nil
}
