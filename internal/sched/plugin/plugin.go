// Package plugin is Berth's kube-scheduler plugin. It carries out the planner's
// decisions: each pod of a job is scheduled to the node that the job's placement names
// (PreFilter), and no pod of a gang is bound before every pod of the gang has its node
// (Permit). A pod that names Berth's scheduler and belongs to no placed job is not
// tried (PreEnqueue) until Waker activates it. Pods for other schedulers pass
// unchanged.
//
// A gang is the pods of one attempt of one job. A pod of a job names both in its labels,
// which users cannot set in their namespaces; a pod of a workload is listed in the
// record of its job. The plugin does not read the job's PodGroup, although there is one
// for other tools: a PodGroup gives the number of the pods, but neither their nodes nor
// the attempt. The placement gives all three, without a second informer that may lag
// behind the first.
package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/berth-hpc/berth/internal/wire"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "Berth"

// Placements are the placements of the jobs that are being started. Safe for concurrent
// use.
type Placements interface {
	// Place returns the node (by its Kubernetes name) of the pod with the index
	// among the pods of the job's attempt, and the number of these pods. ok is
	// false if no job of the namespace has such a placement now.
	Place(namespace string, jobID int64, attempt int32, index int) (node string, size int, ok bool)
	// Workload returns the job, its attempt, and the index of a pod without a job's
	// label; ok is false if it belongs to no workload.
	Workload(pod *corev1.Pod) (jobID int64, attempt int32, index int, ok bool)
	// Bound returns the pods of the attempt that are bound according to the API server.
	Bound(jobID int64, attempt int32) []types.UID
}

// permitTimeout bounds how long a pod waits for the rest of its gang. The keeper requeues
// a job whose gang does not start long before.
const permitTimeout = 10 * time.Minute

// Plugin implements the extension points PreEnqueue, PreFilter, Reserve, Permit, Bind and
// Sign.
type Plugin struct {
	placements Placements
	waiting    waitingPods
	gangs      gangs
	bind       func(context.Context, *corev1.Binding) error
}

// waitingPods is the part of fwk.Handle that the plugin uses.
type waitingPods interface {
	GetWaitingPod(uid types.UID) fwk.WaitingPod
	RejectWaitingPod(uid types.UID) bool
	activator
}

var (
	_ fwk.PreEnqueuePlugin  = (*Plugin)(nil)
	_ fwk.PreFilterPlugin   = (*Plugin)(nil)
	_ fwk.ReservePlugin     = (*Plugin)(nil)
	_ fwk.PermitPlugin      = (*Plugin)(nil)
	_ fwk.BindPlugin        = (*Plugin)(nil)
	_ fwk.SignPlugin        = (*Plugin)(nil)
	_ fwk.EnqueueExtensions = (*Plugin)(nil)
)

// New returns the factory for kube-scheduler's registry. wake, if not nil, activates pods
// in the schedulers that it makes.
func New(p Placements, wake *Waker) frameworkruntime.PluginFactory {
	return func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		if wake != nil {
			wake.add(h)
		}
		return &Plugin{placements: p, waiting: h, bind: binder(h)}, nil
	}
}

// Waker activates pods that PreEnqueue or PreFilter rejected, so that kube-scheduler tries
// them again. The zero value is ready for use. Safe for concurrent use.
type Waker struct {
	mu      sync.Mutex
	handles []activator
}

// activator is the part of fwk.Handle that Waker uses.
type activator interface {
	Activate(logger klog.Logger, pods map[string]*corev1.Pod)
}

func (w *Waker) add(h activator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handles = append(w.handles, h)
}

// Wake activates pods that have a placement now.
func (w *Waker) Wake(pods []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handles {
		activate(h, pods)
	}
}

func activate(h activator, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byName[p.Namespace+"/"+p.Name] = p
	}
	h.Activate(klog.Background(), byName)
}

// Name returns the plugin's name.
func (p *Plugin) Name() string { return Name }

// EventsToRegister returns no events: a pod that this plugin rejected becomes schedulable
// by a placement, for which Waker activates it, and not by an event of the cluster.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PreEnqueue keeps the pods of workloads out of the scheduling queue until their job is
// placed.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if pod.Spec.SchedulerName != wire.SchedulerName {
		return nil
	}
	m, ours, err := p.memberOf(pod)
	if err != nil || hasJobLabel(pod) {
		return nil // PreFilter decides
	}
	if ours {
		if _, _, ok := p.placements.Place(m.namespace, m.jobID, m.attempt, m.index); ok {
			return nil
		}
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod's job is pending in Berth's queue")
}

// PreFilter narrows the nodes to the planned one.
func (p *Plugin) PreFilter(
	_ context.Context,
	_ fwk.CycleState,
	pod *corev1.Pod,
	_ []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	m, ours, err := p.memberOf(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if !ours && pod.Spec.SchedulerName == wire.SchedulerName {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod has no job in Berth's queue")
	}
	if !ours {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	node, _, ok := p.placements.Place(m.namespace, m.jobID, m.attempt, m.index)
	if !ok {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("job %d has no placement for pod %d of attempt %d", m.jobID, m.index, m.attempt))
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions returns nil: there are none.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve adds the pod to its gang.
func (p *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if m, ours, _ := p.memberOf(pod); ours {
		p.gangs.add(m.gang, pod)
	}
	return nil
}

// Unreserve removes the pod from its gang and rejects the pods that wait for it. These are
// activated at once, because no event would do that.
func (p *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	m, ours, _ := p.memberOf(pod)
	if !ours {
		return
	}
	others := p.gangs.remove(m.gang, pod.UID)
	for _, o := range others {
		p.waiting.RejectWaitingPod(o.UID)
	}
	activate(p.waiting, others)
}

// Permit makes a pod wait until all pods of its gang are reserved or bound; the last one
// allows the others.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	m, ours, _ := p.memberOf(pod)
	if !ours {
		return nil, 0
	}
	_, size, ok := p.placements.Place(m.namespace, m.jobID, m.attempt, m.index)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, "the job has no placement any more"), 0
	}
	bound := func() []types.UID { return p.placements.Bound(m.jobID, m.attempt) }
	members, complete := p.gangs.complete(m.gang, size, bound)
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

// SignPod returns no signature for the pods of jobs: each has a planned node, so they
// cannot share the results of a scheduling cycle. Other pods do not depend on Berth.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if _, ours, err := p.memberOf(pod); ours || err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "each pod of a job has a planned node of its own")
	}
	return nil, nil
}
