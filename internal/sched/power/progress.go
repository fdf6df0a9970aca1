package power

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// progressInterval is the interval in which providers are asked about nodes that have not come.
const progressInterval = 5 * time.Second

// noteProgress writes to the status of the pool why nodes have not come, as far as the provider
// knows, and which ones that run are to be removed. It returns when it is due again.
func (x *Controller) noteProgress(ctx context.Context, p *v1alpha1.NodePool) time.Duration {
	current, ok := x.cluster.NodePools.Get(p.Name)
	if !ok {
		return idleInterval
	}
	var names []string
	due := idleInterval
	for _, n := range current.Status.Nodes {
		switch {
		case n.State == v1alpha1.PoolPoweringUp && n.Requested && !n.Refused:
			due = progressInterval
		case n.State == v1alpha1.PoolRunning && p.Spec.ClusterAPI != nil:
		default:
			continue
		}
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return due
	}
	known, err := x.provider.Progress(ctx, current, names)
	if err != nil {
		if ctx.Err() == nil {
			x.log.Warn("progress of nodes unknown", "pool", p.Name, "nodes", names, "error", err)
		}
		return progressInterval
	}
	if len(known) > 0 {
		x.writeProgress(ctx, current, known)
		return due
	}
	return idleInterval
}

// noteFailure writes to the status of the pool why the request for its nodes failed. What a
// program of the site prints is not for all users to read: it is in the scheduler's log.
func (x *Controller) noteFailure(ctx context.Context, p *v1alpha1.NodePool, nodes []string, err error) {
	text := "its request failed (the scheduler's log says why)"
	if p.Spec.NamesObjects() { // an API of the cluster, not a program
		text = "its request failed: " + err.Error()
	}
	known := map[string]Progress{}
	for _, n := range nodes {
		known[n] = Progress{Text: text}
	}
	x.writeProgress(ctx, p, known)
}

// writeProgress records what is known of nodes, as long as they are in the state that was asked
// about.
func (x *Controller) writeProgress(ctx context.Context, asked *v1alpha1.NodePool, known map[string]Progress) {
	for {
		current, ok := x.cluster.NodePools.Get(asked.Name)
		if !ok || !applyProgress(current.DeepCopy(), asked, known) {
			return
		}
		err := x.write(ctx, current, func(s *v1alpha1.NodePoolStatus) {
			p := &v1alpha1.NodePool{Status: *s}
			applyProgress(p, asked, known)
			*s = p.Status
		})
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return // it is written, or asked again later
		}
	}
}

// applyProgress changes the status of p and reports whether anything differs.
func applyProgress(p, asked *v1alpha1.NodePool, known map[string]Progress) (changed bool) {
	for i := range p.Status.Nodes {
		n := &p.Status.Nodes[i]
		k, ok := known[n.Name]
		old, _ := asked.Status.Node(n.Name)
		if !ok || n.State != old.State || n.Requested != old.Requested || !n.Since.Equal(&old.Since) {
			continue
		}
		switch n.State {
		case v1alpha1.PoolPoweringUp:
			text := shorten(k.Text)
			changed = changed || n.Progress != text || n.Refused != k.Refused
			n.Progress, n.Refused = text, k.Refused
		case v1alpha1.PoolRunning:
			changed = changed || k.Leaves && !n.PowerDown
			n.PowerDown = n.PowerDown || k.Leaves // it gets no other job
		}
	}
	return changed
}
