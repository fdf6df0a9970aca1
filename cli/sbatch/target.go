package sbatch

import (
	"context"
	"errors"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// target is the cluster (-M) and the user (--uid) of the submission.
type target struct {
	cluster   string // empty without -M
	namespace string // empty for that of the caller
}

// afterCluster returns the error of a submission that is refused before it is sent: an error about
// the cluster of -M, if there is one and the controller would send the refusal.
func (o *Options) afterCluster(ctx context.Context, err error) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	if !ok || !e.ByController || o.submission == nil || o.submission.Client.Clusters == "" {
		return err
	}
	cluster, failure := o.connect()
	if failure != nil {
		return failure
	}
	if _, failure = o.resolveTarget(ctx, cluster); failure != nil {
		return failure
	}
	return err
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
