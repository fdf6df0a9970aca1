// Package plugin is Berth's kube-scheduler plugin. It makes no choice of its
// own: each pod of a job goes to the one node its job's placement names
// (PreFilter), and no pod of a gang is bound before every pod of the gang has
// its node (Permit). Pods that belong to no job pass untouched.
package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "Berth"

// Placements is what the plugin asks the starter. Safe for concurrent use.
type Placements interface {
	// Place tells the node (by its Kubernetes name) of the pod with that index
	// among the pods of the job's attempt, and how many pods there are.
	// ok is false when the job has no such placement now.
	Place(jobID int64, attempt int32, index int) (node string, size int, ok bool)
	// Bound lists the pods of the attempt that the API server shows as bound.
	Bound(jobID int64, attempt int32) []types.UID
}

// permitTimeout bounds how long a pod may wait for the rest of its gang. The
// keeper gives a gang back long before.
const permitTimeout = 10 * time.Minute

// Plugin implements the PreFilter, Reserve, Permit and Sign points.
type Plugin struct {
	placements Placements
	waiting    waitingPods
	gangs      gangs
}

// waitingPods is the part of fwk.Handle that the plugin uses.
type waitingPods interface {
	GetWaitingPod(uid types.UID) fwk.WaitingPod
	RejectWaitingPod(uid types.UID) bool
}

var (
	_ fwk.PreFilterPlugin = (*Plugin)(nil)
	_ fwk.ReservePlugin   = (*Plugin)(nil)
	_ fwk.PermitPlugin    = (*Plugin)(nil)
	_ fwk.SignPlugin      = (*Plugin)(nil)
)

// New is the factory for kube-scheduler's registry.
func New(p Placements) frameworkruntime.PluginFactory {
	return func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		return &Plugin{placements: p, waiting: h}, nil
	}
}

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// PreFilter narrows the nodes to the planned one.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	m, ours, err := memberOf(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if !ours {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	node, _, ok := p.placements.Place(m.jobID, m.attempt, m.index)
	if !ok {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("job %d has no placement for pod %d of attempt %d", m.jobID, m.index, m.attempt))
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions gives nil: there are none.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve counts the pod in.
func (p *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if m, ours, _ := memberOf(pod); ours {
		p.gangs.add(m.gang, pod.UID)
	}
	return nil
}

// Unreserve counts the pod out, and with it every pod that waits for it.
func (p *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	m, ours, _ := memberOf(pod)
	if !ours {
		return
	}
	for _, uid := range p.gangs.remove(m.gang, pod.UID) {
		p.waiting.RejectWaitingPod(uid)
	}
}

// Permit holds a pod back until its whole gang is reserved or bound; the last
// one lets the others go.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	m, ours, _ := memberOf(pod)
	if !ours {
		return nil, 0
	}
	_, size, ok := p.placements.Place(m.jobID, m.attempt, m.index)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, "the job's placement was given back"), 0
	}
	members, complete := p.gangs.complete(m.gang, size, p.placements.Bound(m.jobID, m.attempt))
	if !complete {
		return fwk.NewStatus(fwk.Wait), permitTimeout
	}
	for _, uid := range members {
		if w := p.waiting.GetWaitingPod(uid); w != nil {
			w.Allow(Name)
		}
	}
	return nil, 0
}

// SignPod refuses: every pod of a job has a node of its own, so nothing can be
// shared between their scheduling cycles. Other pods do not depend on Berth.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if _, ours, err := memberOf(pod); ours || err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "each pod of a job has a planned node of its own")
	}
	return nil, nil
}
