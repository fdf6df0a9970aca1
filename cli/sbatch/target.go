package sbatch

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// target is the cluster (-M) and the user (--uid) of the submission.
type target struct {
	cluster   string // empty without -M
	namespace string // empty for that of the caller
}

// resolveTarget returns the target. Without -M and --uid it sends no request.
func (o *Options) resolveTarget(ctx context.Context, cluster Cluster) (t target, err error) {
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
