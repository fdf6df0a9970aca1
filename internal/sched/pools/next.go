package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// maxFailures is how many times in a row a node is requested that does not come. After that an
// operator has to resume it, so that nothing is paid for a node that never works.
const maxFailures = 3

// retryAfter returns when a node is requested again that has failed that many times in a row.
func retryAfter(failures int32) time.Duration { return time.Minute << min(failures-1, 8) }

// Reasons of nodes, as Slurm words them.
const (
	reasonResumeTimeout = "ResumeTimeout reached"
	reasonStillThere    = "SuspendTimeout reached"
)

// Facts are what decisions about the nodes of pools depend on.
type Facts struct {
	Now time.Time
	// Node returns the object of a node, or nil.
	Node func(name string) *corev1.Node
	// Held are the nodes that jobs hold, by name.
	Held map[string]bool
	// Planned is the earliest start of a job that is planned on a node, by name.
	Planned map[string]time.Time
	// IsBusy reports whether pods run on the node that are not of daemons. Called for nodes
	// that no job holds.
	IsBusy func(name string) bool
	// IdleSince returns since when the node is idle, which begins with the first call after it
	// was used; Used notes that it is used.
	IdleSince func(name string) time.Time
	Used      func(name string)
}

// Next returns what the status of the pool becomes, and when to decide again even if nothing
// happens (zero: never). assigned are the names of its nodes; see Assign.
func Next(p *v1alpha1.NodePool, assigned []string, f *Facts) (v1alpha1.NodePoolStatus, time.Time) {
	d := decision{Facts: f, pool: p}
	out := v1alpha1.NodePoolStatus{Problem: problemOf(p, assigned)}
	listed := listedNodes(p)
	for _, name := range assigned {
		n, known := listed[name]
		delete(listed, name)
		if !known {
			n = v1alpha1.PoolNode{Name: name, State: v1alpha1.PoolPoweredDown}
		}
		n.PowerDown = n.PowerDown || p.DeletionTimestamp != nil
		n = d.next(n)
		if n.State != v1alpha1.PoolPoweredDown || n.Failures > 0 {
			out.Nodes = append(out.Nodes, n)
		}
	}
	for _, n := range listed { // the pool has them no longer
		if n.State == v1alpha1.PoolPoweredDown || n.State == v1alpha1.PoolFailed {
			continue
		}
		n.PowerDown = true
		if n = d.next(n); n.State != v1alpha1.PoolPoweredDown && n.State != v1alpha1.PoolFailed {
			out.Nodes = append(out.Nodes, n)
		}
	}
	out.Problem = join(out.Problem, contradictions(p, out.Nodes, f.Node))
	slices.SortFunc(out.Nodes, func(a, b v1alpha1.PoolNode) int { return hostlist.Compare(a.Name, b.Name) })
	return out, d.due
}

// decision is what is being decided about a pool.
type decision struct {
	*Facts
	pool *v1alpha1.NodePool
	due  time.Time
}

// wake makes sure that it is decided again at the time.
func (d *decision) wake(at time.Time) {
	if d.due.IsZero() || at.Before(d.due) {
		d.due = at
	}
}

// enter returns n in another state.
func (d *decision) enter(n v1alpha1.PoolNode, state string) v1alpha1.PoolNode {
	n.State, n.Since, n.Requested = state, metav1.NewMicroTime(d.Now), false
	n.Progress, n.Refused = "", false
	if state == v1alpha1.PoolPoweringDown {
		d.wake(d.Now.Add(SuspendTimeout(&d.pool.Spec)))
	}
	return n
}

func (d *decision) next(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	switch n.State {
	case v1alpha1.PoolPoweringUp:
		return d.poweringUp(n)
	case v1alpha1.PoolRunning:
		return d.running(n)
	case v1alpha1.PoolPoweringDown:
		return d.poweringDown(n)
	case v1alpha1.PoolFailed:
		return d.failed(n)
	}
	return d.poweredDown(n)
}

// poweredDown requests a node that a job holds, or that is planned to be used once it has
// booted. A node that exists was brought by somebody else, and is handled like others.
func (d *decision) poweredDown(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	n.PowerDown, n.Force = false, false
	if d.Node(n.Name) != nil {
		n = d.enter(n, v1alpha1.PoolRunning)
		n.Requested, n.PowerDown = true, d.pool.DeletionTimestamp != nil
		return d.running(n)
	}
	if d.pool.DeletionTimestamp != nil {
		n.Failures = 0
		return n
	}
	needed := d.Held[n.Name]
	if at, planned := d.Planned[n.Name]; planned && !needed {
		boots := at.Add(-BootTime(&d.pool.Spec))
		if needed = !d.Now.Before(boots); !needed {
			d.wake(boots)
		}
	}
	if !needed {
		return n
	}
	return d.poweringUp(d.enter(n, v1alpha1.PoolPoweringUp))
}

func (d *decision) poweringUp(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	deadline := n.Since.Add(ResumeTimeout(&d.pool.Spec))
	object := d.Node(n.Name)
	switch {
	case n.PowerDown && !d.Held[n.Name]:
		return d.enter(n, v1alpha1.PoolPoweringDown)
	case object != nil && IsReady(object) && isInitialized(&d.pool.Spec, object):
		if less := lacks(&d.pool.Spec, object); less != "" {
			n.Failures, n.Reason = maxFailures, less
			return d.enter(n, v1alpha1.PoolPoweringDown)
		}
		n = d.enter(n, v1alpha1.PoolRunning)
		n.Failures, n.Reason, n.Requested = 0, "", true
		d.Used(n.Name)
		return d.running(n)
	case n.Refused:
		n.Failures++
		n.Reason = n.Progress
		return d.enter(n, v1alpha1.PoolPoweringDown)
	case !d.Now.Before(deadline):
		n.Failures++
		n.Reason = withCause(reasonResumeTimeout, n.Progress)
		return d.enter(n, v1alpha1.PoolPoweringDown)
	}
	d.wake(deadline)
	return n
}

// withCause adds what is known of the cause to the reason of a failure; "": nothing is.
func withCause(reason, cause string) string {
	if cause == "" {
		return reason
	}
	return reason + ": " + cause
}

// running removes a node that is idle for too long, or that has vanished: what brought it may
// still have it.
func (d *decision) running(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	object := d.Node(n.Name)
	if object == nil {
		n.Reason = "the node has vanished"
		return d.enter(n, v1alpha1.PoolPoweringDown)
	}
	if d.Held[n.Name] || d.IsBusy(n.Name) {
		d.Used(n.Name)
		return n
	}
	if n.PowerDown {
		return d.enter(n, v1alpha1.PoolPoweringDown)
	}
	wait := d.pool.Spec.SuspendTime
	if wait == nil || *wait < 0 || isDrained(object) {
		return n
	}
	idle := d.IdleSince(n.Name).Add(time.Duration(*wait) * time.Second)
	if at, planned := d.Planned[n.Name]; planned && at.Before(d.Now.Add(d.keepFor())) {
		d.wake(at.Add(time.Second))
		return n
	}
	if d.Now.Before(idle) {
		d.wake(idle)
		return n
	}
	return d.enter(n, v1alpha1.PoolPoweringDown)
}

// keepFor returns how long before its planned use an idle node is kept: removing it and
// bringing it back would take longer, or save little.
func (d *decision) keepFor() time.Duration {
	return max(time.Duration(*d.pool.Spec.SuspendTime)*time.Second,
		SuspendTimeout(&d.pool.Spec)+BootTime(&d.pool.Spec))
}

// isDrained reports whether an operator keeps jobs from the node: it stays for inspection.
func isDrained(n *corev1.Node) bool { return n.Spec.Unschedulable }

// poweringDown waits until the node is gone and SuspendTimeout is over. A node that is still
// ready then is to be removed again.
func (d *decision) poweringDown(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	over := n.Since.Add(SuspendTimeout(&d.pool.Spec))
	object := d.Node(n.Name)
	switch {
	case d.Now.Before(over):
		d.wake(over)
		return n
	case object != nil && IsReady(object):
		if n.Reason == "" {
			n.Reason = reasonStillThere
		}
		return d.enter(n, v1alpha1.PoolPoweringDown)
	case object != nil || !n.Requested:
		d.wake(d.Now.Add(SuspendTimeout(&d.pool.Spec)))
		return n
	case n.Failures > 0:
		n = d.enter(n, v1alpha1.PoolFailed)
		n.Retry = nil
		if n.Failures < maxFailures {
			retry := metav1.NewMicroTime(d.Now.Add(retryAfter(n.Failures)))
			n.Retry = &retry
		}
		return d.failed(n)
	}
	n = d.enter(n, v1alpha1.PoolPoweredDown)
	n.PowerDown, n.Force, n.Reason = false, false, ""
	return n
}

// failed waits until the node may be requested again. If it has come after all, it is removed.
func (d *decision) failed(n v1alpha1.PoolNode) v1alpha1.PoolNode {
	switch {
	case d.Node(n.Name) != nil:
		return d.enter(n, v1alpha1.PoolPoweringDown)
	case d.pool.DeletionTimestamp != nil:
		return d.poweredDown(d.enter(n, v1alpha1.PoolPoweredDown))
	case n.Retry == nil:
		return n
	case d.Now.Before(n.Retry.Time):
		d.wake(n.Retry.Time)
		return n
	}
	n = d.enter(n, v1alpha1.PoolPoweredDown)
	n.Retry = nil
	return d.poweredDown(n)
}

// lacks returns what the node has less of than the pool promises, in Slurm's words; "": nothing.
func lacks(s *v1alpha1.NodePoolSpec, n *corev1.Node) string {
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		promised, has := s.Resources[name], n.Status.Allocatable[name]
		if has.Cmp(promised) >= 0 {
			continue
		}
		switch name {
		case corev1.ResourceCPU:
			return fmt.Sprintf("Low CPUs (reported:%s < configured:%s)", has.String(), promised.String())
		case corev1.ResourceMemory:
			return fmt.Sprintf("Low RealMemory (reported:%d < configured:%d)", has.Value()>>20, promised.Value()>>20)
		case corev1.ResourceEphemeralStorage:
			return fmt.Sprintf("Low TmpDisk (reported:%d < configured:%d)", has.Value()>>20, promised.Value()>>20)
		}
		return fmt.Sprintf("Low %s (reported:%s < configured:%s)", name, has.String(), promised.String())
	}
	return ""
}

// problemOf returns what is wrong with the description of the pool, which has the assigned
// nodes; "": nothing.
func problemOf(p *v1alpha1.NodePool, assigned []string) string {
	listed, err := hostlist.ExpandLenient(p.Spec.Nodes)
	valid := names(p)
	var problems []string
	switch {
	case err != nil:
		problems = append(problems, fmt.Sprintf("invalid nodes %q: %v", p.Spec.Nodes, err))
	case len(valid) < len(listed):
		problems = append(problems, "some names of nodes cannot be those of Node objects")
	}
	if len(assigned) < len(valid) {
		own := map[string]bool{}
		for _, n := range assigned {
			own[n] = true
		}
		others := slices.DeleteFunc(valid, func(n string) bool { return own[n] })
		problems = append(problems, hostlist.Fold(others)+" belongs to another pool too, which is used")
	}
	if cpu := p.Spec.Resources[corev1.ResourceCPU]; cpu.MilliValue() < 1000 {
		problems = append(problems, "resources has no cpu")
	}
	return join(strings.Join(problems, "; "), unbringable(&p.Spec))
}
