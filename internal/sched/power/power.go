// Package power boots and removes the nodes of pools. Update, which the planner calls in each
// cycle, writes what package pools decides to the status of the NodePool objects; Run then
// makes the requests that the statuses ask for, and records that they were accepted. All state
// is in the objects, and every request can be repeated, so the process may end at any time.
package power

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/fence"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
)

// Controller boots and removes nodes. Update is called by one goroutine; Run by another.
type Controller struct {
	// Leads reports whether this process certainly leads: programs of the site know no fence, so
	// a process that may not lead any more must not call them. nil: it does. Set it before use.
	Leads func() bool

	cluster  *control.Cluster
	provider Provider
	now      func() time.Time
	log      *slog.Logger
	wake     chan struct{}

	idle map[string]time.Time // since when nodes are idle; used by Update only

	mu       sync.Mutex
	attempts map[string]attempt // requests that failed, by node
}

// attempt is a request that failed.
type attempt struct {
	state string
	next  time.Time // when it is repeated
}

// New returns a Controller. It subscribes to the stores of c, which must not be filled yet. A
// nil provider is what pools name: programs of the site, Karpenter and others.
func New(c *control.Cluster, p Provider, now func() time.Time, log *slog.Logger) *Controller {
	if p == nil {
		p = newProviders(c)
	}
	x := &Controller{
		cluster: c, provider: p, now: now, log: log, wake: make(chan struct{}, 1),
		idle: map[string]time.Time{}, attempts: map[string]attempt{},
	}
	c.NodePools.Subscribe(func(_, _ *v1alpha1.NodePool) { x.request() })
	c.Nodes.Subscribe(func(old, now *corev1.Node) {
		if len(c.NodePools.List()) > 0 && (old == nil || now == nil ||
			nodeinfo.Unavailable(old) != nodeinfo.Unavailable(now)) {
			x.request()
		}
	})
	return x
}

// request makes Run look at the pools.
func (x *Controller) request() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Update decides about the nodes of all pools and writes the result. planned has the earliest
// planned start on each node. Jobs must not be placed during the call. It returns when to call
// it again even if nothing happens; zero: never.
func (x *Controller) Update(ctx context.Context, planned func() map[string]time.Time) time.Time {
	all := x.cluster.NodePools.List()
	if len(all) == 0 {
		return time.Time{}
	}
	f := x.facts(planned())
	assigned := pools.Assign(all)
	var due time.Time
	for _, p := range all {
		status, at := pools.Next(p, assigned[p.Name], f)
		if due.IsZero() || !at.IsZero() && at.Before(due) {
			due = at
		}
		if done, err := x.finalize(ctx, p, &status); err != nil && ctx.Err() == nil {
			x.log.Warn("finalizer of a node pool not written", "pool", p.Name, "error", err)
			due = f.Now.Add(time.Second)
		} else if done {
			continue // its change requests another cycle
		}
		if equality.Semantic.DeepEqual(status, p.Status) {
			continue
		}
		switch err := x.write(ctx, p, func(s *v1alpha1.NodePoolStatus) { *s = status }); {
		case err == nil:
			x.logChanges(p, &status)
		case ctx.Err() != nil:
		case apierrors.IsConflict(err): // Run has just recorded a request
			due = f.Now
		default:
			x.log.Warn("state of a node pool not written", "pool", p.Name, "error", err)
			due = f.Now.Add(time.Second)
		}
	}
	return due
}

// finalize keeps the object of a pool until its nodes are removed, so that none of them is
// forgotten. status is what the pool's becomes. done: the object has been changed.
func (x *Controller) finalize(
	ctx context.Context, p *v1alpha1.NodePool, status *v1alpha1.NodePoolStatus,
) (done bool, err error) {
	n := p.DeepCopy()
	if p.DeletionTimestamp == nil {
		done = controllerutil.AddFinalizer(n, wire.Finalizer)
	} else if len(status.Nodes) == 0 {
		done = controllerutil.RemoveFinalizer(n, wire.Finalizer)
	}
	if !done {
		return false, nil
	}
	patch := client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})
	err = x.cluster.Client.Patch(ctx, n, patch)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return true, nil // the watch has the newer version, or its deletion
	case err == nil && n.DeletionTimestamp == nil:
		x.cluster.NodePools.Apply(n)
	}
	return err == nil, err
}

// facts gathers what decisions depend on.
func (x *Controller) facts(planned map[string]time.Time) *pools.Facts {
	now := x.now()
	held := map[string]bool{}
	for _, b := range x.cluster.Jobs.List() {
		if !b.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			a := &b.Status.Allocation.Nodes[i]
			held[a.ObjectName()], held[a.Name] = true, true // pools know nodes by either
		}
	}
	busy := sync.OnceValue(x.busyNodes)
	return &pools.Facts{
		Now: now, Held: held, Planned: planned,
		Node: x.node,
		IsBusy: func(name string) bool {
			n := x.node(name)
			return n != nil && busy()[n.Name]
		},
		IdleSince: func(name string) time.Time {
			if _, known := x.idle[name]; !known {
				x.idle[name] = now
			}
			return x.idle[name]
		},
		Used: func(name string) { delete(x.idle, name) },
	}
}

// node returns the object of the node that a pool lists with the name, or nil.
func (x *Controller) node(name string) *corev1.Node {
	return pools.Object(name, x.cluster.NodesNamed(name)...)
}

// busyNodes returns the nodes with pods that are neither those of daemons nor of the node
// itself.
func (x *Controller) busyNodes() map[string]bool {
	out := map[string]bool{}
	for _, p := range x.cluster.Pods.List() {
		if p.Spec.NodeName != "" && !snapshot.IsTerminated(p) && !belongsToNode(p) {
			out[p.Spec.NodeName] = true
		}
	}
	return out
}

func belongsToNode(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" || o.Kind == "Node"
	})
}

// logChanges logs the nodes whose state changes.
func (x *Controller) logChanges(p *v1alpha1.NodePool, now *v1alpha1.NodePoolStatus) {
	for _, n := range now.Nodes {
		if old, _ := p.Status.Node(n.Name); old.State != n.State {
			x.log.Info("node of a pool", "pool", p.Name, "node", n.Name, "state", n.State, "reason", n.Reason)
		}
	}
	if now.Problem != "" && now.Problem != p.Status.Problem {
		x.log.Warn("node pool", "pool", p.Name, "problem", now.Problem)
	}
}

// write changes the status of the pool. If the pool has changed, it is read again, and the
// error is a conflict.
func (x *Controller) write(
	ctx context.Context, p *v1alpha1.NodePool, change func(*v1alpha1.NodePoolStatus),
) error {
	return x.cluster.WritePool(ctx, p, change)
}

// requestRetry is the pause before a request that failed is repeated.
const requestRetry = 5 * time.Second

// Run makes requests until ctx is done.
func (x *Controller) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
		case <-timer.C:
		}
		timer.Reset(x.act(ctx))
	}
}

// idleInterval is the interval in which Run looks at the pools when nothing happens.
const idleInterval = time.Minute

// act makes the requests that the statuses of the pools ask for, those of one pool together,
// and deletes the objects of nodes that were removed. It returns when it is due again.
func (x *Controller) act(ctx context.Context) time.Duration {
	next := idleInterval
	for _, p := range x.cluster.NodePools.List() {
		for _, state := range []string{v1alpha1.PoolPoweringUp, v1alpha1.PoolPoweringDown} {
			nodes, wait := x.due(p, state)
			next = min(next, wait)
			if len(nodes) > 0 {
				next = min(next, x.makeRequest(ctx, p, state, nodes))
			}
		}
		next = min(next, x.noteProgress(ctx, p))
		if x.removeObjects(ctx, p) != nil || x.removeSurplus(ctx, p) != nil {
			next = min(next, requestRetry)
		}
	}
	return next
}

// due returns the nodes of the pool in the state whose request is to be made now, and when the
// next one is.
func (x *Controller) due(p *v1alpha1.NodePool, state string) (nodes []string, wait time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait = idleInterval
	now := x.now()
	for _, n := range p.Status.Nodes {
		if n.State != state || n.Requested {
			continue
		}
		if a := x.attempts[n.Name]; a.state == state && now.Before(a.next) {
			wait = min(wait, a.next.Sub(now))
			continue
		}
		nodes = append(nodes, n.Name)
	}
	return nodes, wait
}

// makeRequest makes one request and records that it was accepted. It returns when the next one
// is due.
func (x *Controller) makeRequest(
	ctx context.Context, p *v1alpha1.NodePool, state string, nodes []string,
) time.Duration {
	err := x.call(ctx, p, state, nodes)
	if err != nil {
		if ctx.Err() == nil {
			x.log.Warn("request for nodes failed", "pool", p.Name, "state", state, "nodes", nodes, "error", err)
			x.noteFailure(ctx, p, nodes, err)
		}
		x.mu.Lock()
		for _, n := range nodes {
			x.attempts[n] = attempt{state, x.now().Add(requestRetry)}
		}
		x.mu.Unlock()
		return requestRetry
	}
	requested := map[string]bool{}
	for _, n := range nodes {
		requested[n] = true
	}
	x.forget(nodes)
	for {
		current, ok := x.cluster.NodePools.Get(p.Name)
		if !ok {
			return idleInterval
		}
		err := x.write(ctx, current, func(s *v1alpha1.NodePoolStatus) {
			for i := range s.Nodes {
				n := &s.Nodes[i]
				old, _ := p.Status.Node(n.Name)
				if requested[n.Name] && n.State == state && n.Since.Equal(&old.Since) && !n.Requested {
					n.Requested, n.Progress = true, ""
				}
			}
		})
		switch {
		case apierrors.IsConflict(err) && ctx.Err() == nil:
		case err != nil:
			return requestRetry // the request is repeated
		default:
			return idleInterval
		}
	}
}

// call makes one request.
func (x *Controller) call(ctx context.Context, p *v1alpha1.NodePool, state string, nodes []string) error {
	if x.Leads != nil && !x.Leads() {
		return fence.ErrLeaseExpired
	}
	if state == v1alpha1.PoolPoweringUp {
		return x.provider.Resume(ctx, p, nodes)
	}
	var failed []string
	for _, name := range nodes {
		if n, _ := p.Status.Node(name); n.Failures > 0 {
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		if err := x.provider.Failed(ctx, p, failed); err != nil {
			x.log.Warn("nodes that failed not reported", "pool", p.Name, "nodes", failed, "error", err)
		}
	}
	return x.provider.Suspend(ctx, p, nodes)
}

// forget forgets failed requests for the nodes.
func (x *Controller) forget(nodes []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.attempts, func(n string, _ attempt) bool { return slices.Contains(nodes, n) })
}
