// Package nodehealth drains nodes whose conditions say that something is wrong, as
// HealthCheckProgram does in Slurm: node-problem-detector and the checks of sites report
// conditions, and nobody else keeps jobs away from such a node. It also drains nodes that will
// be removed, and notes when that was announced, for the keeper. A node that is healthy again
// is resumed, unless an operator has changed its state meanwhile.
package nodehealth

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// defaultConditions are the permanent problems that node-problem-detector reports unless a site
// configures others.
var defaultConditions = []string{"KernelDeadlock", "ReadonlyFilesystem"}

const (
	stateDrain = "drain"
	// retryAfter is the pause before nodes are looked at again after a write has failed.
	retryAfter = 10 * time.Second
	maxMessage = 200 // bytes of a condition's message in the reason
)

// Controller drains and resumes nodes.
type Controller struct {
	cluster *control.Cluster
	now     func() time.Time
	log     *slog.Logger
	wake    chan struct{}
}

// New returns a Controller. It subscribes to the stores of c, which must not be filled yet.
func New(c *control.Cluster, now func() time.Time, log *slog.Logger) *Controller {
	x := &Controller{cluster: c, now: now, log: log, wake: make(chan struct{}, 1)}
	c.Nodes.Subscribe(func(_, now *corev1.Node) {
		if now != nil {
			x.request()
		}
	})
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { x.request() })
	return x
}

func (x *Controller) request() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run drains and resumes nodes until ctx is done.
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
		if x.check(ctx) != nil {
			timer.Reset(retryAfter)
		}
	}
}

// check looks at every node, and returns an error if one could not be changed.
func (x *Controller) check(ctx context.Context) error {
	p := x.cluster.Parameters()
	names := signs{
		conditions: configured(p.DrainConditions, defaultConditions),
		notices:    configured(p.RemovalNotices, defaultNotices),
	}
	var failed error
	for _, n := range x.cluster.Nodes.List() {
		after := decide(n, names, x.now())
		if after == nil {
			continue
		}
		patch := client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})
		err := x.cluster.Client.Patch(ctx, after, patch)
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the change of the node wakes Run
		case err != nil:
			failed = err
			if ctx.Err() == nil {
				x.log.Warn("node not drained or resumed", "node", n.Name, "error", err)
			}
		default:
			x.log.Info("node drained or resumed because of its conditions", "node", n.Name,
				"reason", after.Annotations[wire.AnnotationReason])
			x.cluster.Nodes.Apply(after)
		}
	}
	return failed
}

// configured returns the names of a list in the Cluster, or the default ones.
func configured(list, standard []string) []string {
	switch {
	case len(list) == 0:
		return standard
	case len(list) == 1 && strings.EqualFold(list[0], "none"):
		return nil
	}
	return list
}

// decide returns the node as it should be, or nil if it is as it should be.
func decide(n *corev1.Node, names signs, now time.Time) *corev1.Node {
	if n.Labels[wire.LabelManaged] == "false" {
		return nil
	}
	problem := notice(n, names.notices)
	noted := noteRemoval(n, problem, now)
	if problem == nil {
		problem = unhealthy(n, names.conditions)
	}
	return cmp.Or(changeState(cmp.Or(noted, n), problem, now), noted)
}

// changeState returns the node with the state that follows from the problem, which may be nil,
// or nil if it has that state.
func changeState(n *corev1.Node, problem *corev1.NodeCondition, now time.Time) *corev1.Node {
	drainedFor, ours := n.Annotations[wire.AnnotationDrainedFor]
	state := n.Annotations[wire.AnnotationState]
	switch {
	case problem != nil && state == "" && !n.Spec.Unschedulable:
		return drained(n, problem, now)
	case !ours:
		return nil
	case state != stateDrain: // an operator has resumed it, or set it down
		return without(n, wire.AnnotationDrainedFor)
	case problem == nil:
		after := without(n, wire.AnnotationDrainedFor, wire.AnnotationState, wire.AnnotationReason)
		after.Spec.Unschedulable = false
		return after
	case string(problem.Type) != drainedFor:
		return drained(n, problem, now)
	}
	return nil
}

// unhealthy returns the first condition of the node that drains it, in the order of names.
func unhealthy(n *corev1.Node, names []string) *corev1.NodeCondition {
	for _, name := range names {
		for i := range n.Status.Conditions {
			c := &n.Status.Conditions[i]
			if strings.EqualFold(string(c.Type), name) && c.Status == corev1.ConditionTrue {
				return c
			}
		}
	}
	return nil
}

// drained returns the node, drained because of the condition.
func drained(n *corev1.Node, c *corev1.NodeCondition, now time.Time) *corev1.Node {
	after := n.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	text := string(c.Type)
	if message := strings.Join(strings.Fields(c.Message), " "); message != "" {
		text += ": " + strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
	}
	after.Annotations[wire.AnnotationState] = stateDrain
	after.Annotations[wire.AnnotationReason] = text + " [root@" + now.UTC().Format("2006-01-02T15:04:05") + "]"
	after.Annotations[wire.AnnotationDrainedFor] = string(c.Type)
	after.Spec.Unschedulable = true
	return after
}

// without returns the node without the annotations.
func without(n *corev1.Node, names ...string) *corev1.Node {
	after := n.DeepCopy()
	for name := range after.Annotations {
		if slices.Contains(names, name) {
			delete(after.Annotations, name)
		}
	}
	return after
}
