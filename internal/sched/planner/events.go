package planner

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
)

// Wake asks for a new plan, of which nothing that was known may be taken for
// granted.
func (p *Planner) Wake() {
	p.changing.Lock()
	p.changed.all = true
	p.changing.Unlock()
	p.wakeUp()
}

// wakeUp asks for another pass.
func (p *Planner) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// reshape is Wake after a change of what jobs may ask for.
func (p *Planner) reshape() {
	p.reshaped.Store(true)
	p.Wake()
}

// podChanged wakes for what a plan depends on: where a pod is and whether it
// is over. What a job holds is known from its allocation, wherever its pods are.
func (p *Planner) podChanged(old, now *corev1.Pod) {
	if old != nil && now != nil && old.Spec.NodeName == now.Spec.NodeName && snapshot.Over(old) == snapshot.Over(now) {
		return
	}
	if now == nil {
		now = old
	}
	id := snapshot.JobOf(now)
	b := p.jobOf(now, id)
	if b != nil && b.HoldsAllocation() || b == nil && id == 0 && now.Spec.NodeName == "" {
		return
	}
	if id != 0 {
		p.jobChanged(id)
		return
	}
	p.Wake()
}

// jobOf is the job whose allocation counts the pod, as long as it holds
// anything; id is that of the pod's label.
func (p *Planner) jobOf(pod *corev1.Pod, id int64) *v1alpha1.BatchJob {
	if id == 0 {
		b, _, _ := p.cluster.WorkloadOf(pod.UID)
		return b
	}
	b, ok := p.cluster.Job(id)
	if !ok || b.Namespace != pod.Namespace || strconv.Itoa(int(b.Status.Attempt)) != pod.Labels[wire.LabelAttempt] {
		return nil
	}
	return b
}

// nodeChanged leaves out the kubelets' regular reports.
func (p *Planner) nodeChanged(old, now *corev1.Node) {
	if old != nil && now != nil &&
		snapshot.Unavailable(old) == snapshot.Unavailable(now) &&
		equality.Semantic.DeepEqual(old.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(old.Labels, now.Labels) &&
		equality.Semantic.DeepEqual(old.Annotations, now.Annotations) &&
		equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) {
		return
	}
	p.reshaped.Store(true)
	if now == nil {
		now = old
	}
	p.changing.Lock()
	if p.changed.nodes == nil {
		p.changed.nodes = map[string]bool{}
	}
	p.changed.nodes[now.Name] = true
	p.changing.Unlock()
	p.wakeUp()
}
