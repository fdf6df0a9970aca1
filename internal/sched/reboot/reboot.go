// Package reboot carries out scontrol reboot. An operator's request is an annotation of the
// Node (wire.NodeReboot). Update, which the planner calls in each cycle, keeps a node from jobs
// when its last one has ended; Run then runs the site's program that reboots it. When the node
// is back, or has not come back in time, Update gives it the state that follows. All state is
// in the annotation, so the process may end at any time.
package reboot

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/fence"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/sched/siteprogram"
	"github.com/berth-hpc/berth/internal/wire"
)

// defaultTimeout is ResumeTimeout of slurm.conf(5).
const defaultTimeout = time.Minute

// retryAfter is the pause before something that failed is repeated.
const retryAfter = 5 * time.Second

// Controller reboots nodes. Update is called by one goroutine; Run by another.
type Controller struct {
	// Leads reports whether this process certainly leads: programs of the site know no fence,
	// so a process that may not lead any more must not run them. nil: it does. Set it before use.
	Leads func() bool
	// Perform runs the program for nodes; nil: as a program of the site. Set it before use.
	Perform func(ctx context.Context, program string, nodes []string) error

	cluster *control.Cluster
	now     func() time.Time
	log     *slog.Logger
	wake    chan struct{}

	mu        sync.Mutex
	requested map[string]bool // nodes with the annotation
	performed map[string]bool // nodes that the program is being run for
}

// New returns a Controller. It subscribes to the stores of c, which must not be filled yet.
func New(c *control.Cluster, now func() time.Time, log *slog.Logger) *Controller {
	x := &Controller{cluster: c, now: now, log: log, wake: make(chan struct{}, 1), requested: map[string]bool{}}
	c.Nodes.Subscribe(x.changed)
	return x
}

// changed notes whether a reboot of the node is requested.
func (x *Controller) changed(old, now *corev1.Node) {
	if now == nil {
		x.set(old.Name, false)
		return
	}
	if requested := now.Annotations[wire.AnnotationReboot] != ""; x.set(now.Name, requested) || requested {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// set notes whether a reboot of the node is requested, and reports whether that is new.
func (x *Controller) set(node string, requested bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.requested[node] == requested {
		return false
	}
	if delete(x.requested, node); requested {
		x.requested[node] = true
	}
	return true
}

// nodes returns the nodes whose reboot is requested, ordered by name.
func (x *Controller) nodes() []*corev1.Node {
	x.mu.Lock()
	names := slices.Sorted(maps.Keys(x.requested))
	x.mu.Unlock()
	var out []*corev1.Node
	for _, name := range names {
		if n, ok := x.cluster.Nodes.Get(name); ok {
			out = append(out, n)
		}
	}
	return out
}

// Update decides about all nodes whose reboot is requested. Jobs must not be placed during the
// call. It returns when to call it again even if nothing happens; zero: never.
func (x *Controller) Update(ctx context.Context) time.Time {
	var due time.Time
	held := sync.OnceValue(x.heldNodes)
	for _, n := range x.nodes() {
		r := wire.ParseNodeReboot(n.Annotations)
		if r == nil {
			continue // not written by scontrol
		}
		if x.isPerformed(n.Name) { // no job may start there before the program has ended
			due = earliest(due, x.now().Add(time.Second))
			continue
		}
		f := facts{now: x.now(), busy: r.Issued == nil && held()[n.Name], timeout: x.timeout(n.Name)}
		after, at := next(n, r, f)
		if after != nil && !x.write(ctx, n, after) {
			at = f.now.Add(retryAfter)
		}
		due = earliest(due, at)
	}
	return due
}

// earliest returns the earlier of two times that are not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isPerformed reports whether the program is being run for the node.
func (x *Controller) isPerformed(node string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.performed[node]
}

// setPerformed notes for which nodes the program is being run.
func (x *Controller) setPerformed(nodes []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.performed = map[string]bool{}
	for _, n := range nodes {
		x.performed[n] = true
	}
}

// heldNodes returns the nodes that jobs have.
func (x *Controller) heldNodes() map[string]bool {
	held := map[string]bool{}
	for _, b := range x.cluster.Jobs.List() {
		if !b.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			held[b.Status.Allocation.Nodes[i].ObjectName()] = true
		}
	}
	return held
}

// timeout returns how long the reboot of a node may take.
func (x *Controller) timeout(node string) time.Duration {
	if n, ok := x.cluster.Nodes.Get(node); ok {
		node = nodeinfo.PoolName(n)
	}
	if p := pools.Of(x.cluster.NodePools.List(), node); p != nil {
		return pools.ResumeTimeout(&p.Spec)
	}
	return cmp.Or(time.Duration(x.cluster.Parameters().ResumeTimeout)*time.Second, defaultTimeout)
}

// write replaces the node, and reports whether nothing is left to do until it changes.
func (x *Controller) write(ctx context.Context, before, after *corev1.Node) bool {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := x.cluster.Client.Patch(ctx, after, patch)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the watch has the newer version
		return true
	case err != nil:
		if ctx.Err() == nil {
			x.log.Warn("state of a node that reboots not written", "node", before.Name, "error", err)
		}
		return false
	}
	if reason := after.Annotations[wire.AnnotationReason]; reason != before.Annotations[wire.AnnotationReason] {
		x.log.Info("reboot of a node", "node", after.Name, "reason", reason)
	}
	x.cluster.Nodes.Apply(after)
	return true
}

// Run runs the program for nodes that are to reboot until ctx is done.
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
		if err := x.act(ctx); err != nil {
			if ctx.Err() == nil {
				x.log.Warn("nodes not rebooted", "error", err)
			}
			timer.Reset(retryAfter)
		}
	}
}

// due returns the nodes that are to reboot now. Until setPerformed is called again they do not
// get another state.
func (x *Controller) due() []string {
	var names []string
	for _, n := range x.nodes() {
		r := wire.ParseNodeReboot(n.Annotations)
		if r != nil && r.Issued != nil && !r.Accepted {
			names = append(names, n.Name)
		}
	}
	x.setPerformed(names)
	// Update may have seen a node return before that.
	return slices.DeleteFunc(names, func(name string) bool {
		n, ok := x.cluster.Nodes.Get(name)
		if !ok {
			return true
		}
		r := wire.ParseNodeReboot(n.Annotations)
		return r == nil || r.Issued == nil || hasReturned(n, r)
	})
}

// act runs the program for all nodes that are to reboot now, and records that.
func (x *Controller) act(ctx context.Context) error {
	names := x.due()
	defer x.setPerformed(nil)
	program := x.cluster.Parameters().RebootProgram
	if len(names) == 0 || program == "" {
		return nil
	}
	if x.Leads != nil && !x.Leads() {
		return fence.ErrLeaseExpired
	}
	limited, cancel := context.WithTimeout(ctx, x.timeout(names[0]))
	defer cancel()
	if err := x.perform(limited, program, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := x.accept(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (x *Controller) perform(ctx context.Context, program string, nodes []string) error {
	if x.Perform != nil {
		return x.Perform(ctx, program, nodes)
	}
	return siteprogram.Run(ctx, program, []string{strings.Join(nodes, ",")}, nil)
}

// accept records that the program has been run for the node.
func (x *Controller) accept(ctx context.Context, name string) error {
	for {
		n := &corev1.Node{}
		err := x.cluster.Client.Get(ctx, client.ObjectKey{Name: name}, n)
		r := wire.ParseNodeReboot(n.Annotations)
		if err != nil || r == nil || r.Issued == nil {
			return client.IgnoreNotFound(err) // it is gone, or an operator has intervened
		}
		after := n.DeepCopy()
		r.Accepted = true
		after.Annotations[wire.AnnotationReboot] = r.String()
		err = x.cluster.Client.Patch(ctx, after, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			if err == nil {
				x.cluster.Nodes.Apply(after)
			}
			return client.IgnoreNotFound(err)
		}
	}
}
