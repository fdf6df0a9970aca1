// Package plugin is Berth's kube-scheduler plugin. It makes no choice of its
// own: each pod of a job goes to the one node its job's placement names
// (PreFilter), and no pod of a gang is bound before every pod of the gang has
// its node (Permit). A pod that names Berth's scheduler and belongs to no placed
// job is not tried at all (PreEnqueue) until Waker says that it is placed. Pods
// for other schedulers pass untouched.
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

// Placements is what the plugin asks the starter. Safe for concurrent use.
type Placements interface {
	// Place tells the node (by its Kubernetes name) of the pod with that index
	// among the pods of the job's attempt, and how many pods there are.
	// ok is false when no job of the pod's namespace has such a placement now.
	Place(namespace string, jobID int64, attempt int32, index int) (node string, size int, ok bool)
	// Workload tells which pod of which attempt of which job one is that
	// carries no job's label; ok is false if it is none's.
	Workload(pod *corev1.Pod) (jobID int64, attempt int32, index int, ok bool)
	// Bound lists the pods of the attempt that the API server shows as bound.
	Bound(jobID int64, attempt int32) []types.UID
}

// permitTimeout bounds how long a pod may wait for the rest of its gang. The
// keeper gives a gang back long before.
const permitTimeout = 10 * time.Minute

// Plugin implements the PreEnqueue, PreFilter, Reserve, Permit, Bind and Sign points.
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

// New is the factory for kube-scheduler's registry. wake, where not nil, is told
// of placed pods.
func New(p Placements, wake *Waker) frameworkruntime.PluginFactory {
	return func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		if wake != nil {
			wake.serve(h)
		}
		return &Plugin{placements: p, waiting: h, bind: binder(h)}, nil
	}
}

// Waker has kube-scheduler try pods that PreEnqueue or PreFilter turned away.
// The zero value is ready for use. Safe for concurrent use.
type Waker struct {
	mu     sync.Mutex
	handle []activator
}

// activator is the part of fwk.Handle that Waker uses.
type activator interface {
	Activate(logger klog.Logger, pods map[string]*corev1.Pod)
}

func (w *Waker) serve(h activator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handle = append(w.handle, h)
}

// Wake tells that the pods have places now.
func (w *Waker) Wake(pods []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handle {
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

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// EventsToRegister is empty: what makes a pod schedulable that this plugin
// turned away is a placement, of which Waker tells, and no event of the cluster.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PreEnqueue keeps pods of workloads out of the scheduling queue until their
// job is placed.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if pod.Spec.SchedulerName != wire.SchedulerName {
		return nil
	}
	m, ours, err := p.memberOf(pod)
	if err != nil || labelled(pod) {
		return nil // PreFilter decides
	}
	if ours {
		if _, _, ok := p.placements.Place(m.namespace, m.jobID, m.attempt, m.index); ok {
			return nil
		}
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits in Berth's queue")
}

// PreFilter narrows the nodes to the planned one.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
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

// PreFilterExtensions gives nil: there are none.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve counts the pod in.
func (p *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if m, ours, _ := p.memberOf(pod); ours {
		p.gangs.add(m.gang, pod)
	}
	return nil
}

// Unreserve counts the pod out, and with it every pod that waits for it; these
// are tried again at once, for no event would tell that they may be.
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

// Permit holds a pod back until its whole gang is reserved or bound; the last
// one lets the others go.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	m, ours, _ := p.memberOf(pod)
	if !ours {
		return nil, 0
	}
	_, size, ok := p.placements.Place(m.namespace, m.jobID, m.attempt, m.index)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, "the job's placement was given back"), 0
	}
	members, complete := p.gangs.complete(m.gang, size, func() []types.UID { return p.placements.Bound(m.jobID, m.attempt) })
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
	if _, ours, err := p.memberOf(pod); ours || err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "each pod of a job has a planned node of its own")
	}
	return nil, nil
}
