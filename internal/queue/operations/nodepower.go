package operations

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// States of scontrol update nodename=... that bring nodes of pools and remove them.
const (
	stateResume         = "RESUME"
	statePowerUp        = "POWER_UP"
	statePowerDown      = "POWER_DOWN"
	statePowerDownForce = "POWER_DOWN_FORCE"
)

// setNodePower requests that a node of a pool boots or is removed. A node that runs jobs is
// removed when they have ended; POWER_DOWN_FORCE ends them. RESUME and POWER_UP also apply to a
// node that is not requested any more because it did not come.
func setNodePower(s *Service, p *nodePatch, state string) error {
	if s.poolOf(p.row.Name) == nil {
		return refusal.NotSupported
	}
	at := metav1.NewMicroTime(s.Now())
	p.power = func(n *v1alpha1.PoolNode) {
		switch state {
		case stateResume:
			resumeNode(n)
		case statePowerUp:
			resumeNode(n)
			if n.PowerDown, n.Force = false, false; n.State == v1alpha1.PoolPoweredDown {
				n.State, n.Since, n.Requested = v1alpha1.PoolPoweringUp, at, false
			}
		default:
			if n.State == v1alpha1.PoolRunning || n.State == v1alpha1.PoolPoweringUp {
				n.PowerDown, n.Force = true, state == statePowerDownForce
			}
		}
	}
	return nil
}

// resumeNode makes a node that failed one that may be requested.
func resumeNode(n *v1alpha1.PoolNode) {
	if n.State == v1alpha1.PoolFailed {
		n.State, n.Retry, n.Reason = v1alpha1.PoolPoweredDown, nil, ""
	}
	if n.State == v1alpha1.PoolPoweredDown {
		n.Failures = 0
	}
}

// poolOf returns the pool of a node, or nil. If several have it, it is the first by name.
func (s *Service) poolOf(node string) *v1alpha1.NodePool {
	var found *v1alpha1.NodePool
	for _, p := range s.Cluster.NodePools.List() {
		pattern, err := hostlist.ParsePattern(p.Spec.Nodes)
		if err == nil && pattern.Match(node) && (found == nil || p.Name < found.Name) {
			found = p
		}
	}
	return found
}

// writePower writes the change of a node of a pool.
func (s *Service) writePower(ctx context.Context, p *nodePatch) error {
	for {
		pool := s.poolOf(p.row.Name)
		if pool == nil {
			return refusal.InvalidNode
		}
		err := s.Cluster.WritePool(ctx, pool, func(st *v1alpha1.NodePoolStatus) {
			n, listed := st.Node(p.row.Name)
			if !listed {
				n = v1alpha1.PoolNode{Name: p.row.Name, State: v1alpha1.PoolPoweredDown}
				if !slices.Contains(p.row.Flags, "POWERED_DOWN") {
					n.State = v1alpha1.PoolRunning
				}
				st.Nodes = append(st.Nodes, n)
			}
			p.power(&n)
			i := slices.IndexFunc(st.Nodes, func(o v1alpha1.PoolNode) bool { return o.Name == n.Name })
			st.Nodes[i] = n
		})
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return err
		}
	}
}
