package processnode

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/processnode/kubeletapi"
	"github.com/berth-hpc/berth/internal/processnode/podenv"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
	"github.com/berth-hpc/berth/internal/processnode/volume"
)

const (
	// initialStatusDelay is the delay of the first status of a pod. Most pods are Running
	// sooner, which saves a request.
	initialStatusDelay = 300 * time.Millisecond
	// retryPause is the delay between attempts to prepare volumes and network of a pod.
	retryPause = time.Second
	// defaultGrace is the grace period of a pod that specifies none.
	defaultGrace = 30 * time.Second
)

// pod is a pod from its arrival until its deletion from the API server. The goroutine run
// controls it.
type pod struct {
	m        *manager
	node     *NodeConfig
	spec     *corev1.Pod // as received first
	dir      string
	hostname string
	facts    podenv.Facts
	refusal  *refusal
	net      *podnet.Pod // set by setUp
	volumes  *volume.Set

	// ctx ends with the pod's processes.
	ctx    context.Context
	cancel context.CancelFunc
	over   atomic.Bool   // its processes have ended and its resources are released
	done   chan struct{} // closed when run has returned
	dirty  chan struct{} // of capacity one; receives when the status has changed

	inits, containers []*container // fixed by newPod

	mu         sync.Mutex
	startTime  metav1.Time
	reason     string // why the pod fails as a whole; empty: its containers decide
	message    string
	initDone   bool
	started    bool // the containers were started
	ended      bool // run has posted its last status
	deleting   bool
	objectGone bool // the object was deleted
	lost       bool // the node was stopped before the pod had ended
	stopped    bool
	stopping   chan struct{} // closed: end by SIGTERM
	killTimer  *time.Timer
	killAt     time.Time
	killed     chan struct{} // closed: end by SIGKILL
	killOnce   sync.Once
	removing   sync.Once
	changes    map[corev1.PodConditionType]corev1.PodCondition
	timers     []*time.Timer
}

func (m *manager) newPod(spec *corev1.Pod, node *NodeConfig) *pod {
	p := &pod{
		m: m, node: node, spec: spec,
		dir:  filepath.Join(m.podsDir(), string(spec.UID)),
		done: make(chan struct{}), dirty: make(chan struct{}, 1),
		stopping: make(chan struct{}), killed: make(chan struct{}),
		changes:   map[corev1.PodConditionType]corev1.PodCondition{},
		startTime: metav1.Now(),
	}
	p.ctx, p.cancel = context.WithCancel(m.api)
	p.hostname = hostnameOf(spec)
	p.facts = podenv.Facts{Pod: spec, HostIP: m.hostIP, Objects: m.objects, Capacity: node.Capacity()}
	p.volumes = &volume.Set{
		Pod: spec, Dir: p.volumesDir(), Memory: p.memoryDir(), Root: m.iso.Root, Facts: &p.facts, Client: m.cfg.Client,
		Hosts: p.hosts, Later: p.later, Log: m.log,
	}
	for i := range spec.Spec.InitContainers {
		p.inits = append(p.inits, newContainer(p, &spec.Spec.InitContainers[i], true))
	}
	for i := range spec.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, &spec.Spec.Containers[i], false))
	}
	return p
}

// hostnameOf returns a pod's host name, with at most 63 characters as in the kernel and
// Kubernetes.
func hostnameOf(spec *corev1.Pod) string {
	name := spec.Name
	if spec.Spec.Hostname != "" {
		name = spec.Spec.Hostname
	}
	if o := spec.Spec.HostnameOverride; o != nil && *o != "" {
		return *o
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

func (p *pod) volumesDir() string { return filepath.Join(p.dir, "volumes") }

// memoryDir returns the pod's directory in memory, or "" if there is none.
func (p *pod) memoryDir() string {
	if p.m.shm == "" {
		return ""
	}
	return filepath.Join(p.m.shm, string(p.spec.UID))
}

// hosts returns the initial content of the pod's /etc/hosts.
func (p *pod) hosts() string { return p.net.Hosts(p.hostname, p.spec.Spec.HostAliases) }

func (p *pod) allContainers() []*corev1.Container {
	var all []*corev1.Container
	for i := range p.spec.Spec.InitContainers {
		all = append(all, &p.spec.Spec.InitContainers[i])
	}
	for i := range p.spec.Spec.Containers {
		all = append(all, &p.spec.Spec.Containers[i])
	}
	return all
}

// run runs the pod until it has ended and its last status is written.
func (p *pod) run() {
	defer close(p.done)
	var poster sync.WaitGroup
	stopPoster := make(chan struct{})
	poster.Go(func() { p.postChanges(stopPoster) })
	if p.refusal != nil {
		p.fail(p.refusal.reason, p.refusal.message)
		p.event(corev1.EventTypeWarning, p.refusal.reason, p.refusal.message)
	} else {
		p.runContainers()
	}
	p.tearDown()
	close(stopPoster)
	poster.Wait()
	p.finish()
}

// runContainers sets the pod up and runs its containers until all have ended.
func (p *pod) runContainers() {
	if d := p.spec.Spec.ActiveDeadlineSeconds; d != nil {
		p.later(time.Duration(*d)*time.Second, func() {
			p.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
			p.stop(p.grace())
		})
	}
	p.later(initialStatusDelay, p.post)
	if !p.setUp() || !p.initialize() {
		return
	}
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range p.containers {
		all.Go(c.run)
	}
	all.Wait()
}

// initialize runs the init containers one after the other, and reports whether all
// succeeded and the pod was not stopped.
func (p *pod) initialize() bool {
	for _, c := range p.inits {
		c.run()
		if p.isStopped() {
			return false
		}
		if !c.succeeded() {
			return false
		}
	}
	p.mu.Lock()
	p.initDone = true
	p.mu.Unlock()
	return true
}

// setUp creates network and volumes. It retries after errors until it succeeds, and reports
// false if the pod was stopped before.
func (p *pod) setUp() bool {
	err := volume.Private(p.dir)
	if err == nil {
		err = os.MkdirAll(p.volumesDir(), 0o711)
	}
	if err != nil {
		p.fail("FailedCreatePodSandBox", err.Error())
		return false
	}
	for lastError := ""; ; {
		err := p.attach()
		if err == nil {
			err = p.volumes.Prepare(p.ctx)
		}
		if err == nil {
			return !p.isStopped()
		}
		if err.Error() != lastError {
			lastError = err.Error()
			p.event(corev1.EventTypeWarning, "FailedMount", lastError)
		}
		select {
		case <-p.stopping:
			return false
		case <-time.After(retryPause):
		}
	}
}

func (p *pod) attach() error {
	if p.net != nil {
		return nil
	}
	net := p.m.cfg.Network.HostNetwork()
	if !p.spec.Spec.HostNetwork {
		var err error
		if net, err = p.m.cfg.Network.Attach(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.net = net
	p.facts.PodIP = net.Address.String()
	p.mu.Unlock()
	return nil
}

// tearDown releases the resources of the pod, except its logs.
func (p *pod) tearDown() {
	p.cancel()
	p.mu.Lock()
	timers := p.timers
	p.timers = nil
	if p.killTimer != nil {
		p.killTimer.Stop()
	}
	p.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	if p.net != nil {
		p.net.Close()
	}
	_ = os.RemoveAll(p.volumesDir())
	if dir := p.memoryDir(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	p.over.Store(true)
}

// finish writes the last status, and deletes the pod if that was requested.
func (p *pod) finish() {
	p.mu.Lock()
	objectGone := p.objectGone
	p.mu.Unlock()
	if !objectGone {
		p.patch(p.status(true))
	}
	p.mu.Lock()
	p.ended = true
	objectGone, deleting := p.objectGone, p.deleting
	p.mu.Unlock()
	if objectGone {
		_ = os.RemoveAll(p.dir)
	} else if deleting {
		p.remove()
	}
}

// update handles a change of the pod's object: it stops the pod if its deletion was
// requested.
func (p *pod) update(spec *corev1.Pod) {
	if spec.DeletionTimestamp == nil {
		return
	}
	p.mu.Lock()
	p.deleting = true
	ended := p.ended
	p.mu.Unlock()
	if ended {
		p.m.wait.Go(p.remove)
		return
	}
	grace := p.grace()
	if spec.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*spec.DeletionGracePeriodSeconds) * time.Second
	}
	p.stop(grace)
}

// objectDeleted kills the pod, because its object was deleted.
func (p *pod) objectDeleted() {
	p.mu.Lock()
	p.objectGone = true
	ended := p.ended
	p.mu.Unlock()
	if ended {
		_ = os.RemoveAll(p.dir)
		return
	}
	p.stop(0)
}

// nodeStopped ends the pod because its node is being stopped.
func (p *pod) nodeStopped() {
	p.mu.Lock()
	p.lost = !p.ended
	p.mu.Unlock()
	p.stop(p.m.cfg.StopGrace)
}

func (p *pod) grace() time.Duration {
	if s := p.spec.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultGrace
}

// stop ends the pod: SIGTERM now, SIGKILL after grace. A later call may shorten the
// grace period, but not extend it.
func (p *pod) stop(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Now().Add(grace)
	if !p.stopped {
		p.stopped = true
		p.killAt = at
		if grace <= 0 {
			p.kill() // before stopping is closed, so that no SIGTERM is sent
		} else {
			p.killTimer = time.AfterFunc(grace, p.kill)
		}
		close(p.stopping)
		return
	}
	if at.Before(p.killAt) {
		p.killAt = at
		if p.killTimer != nil {
			p.killTimer.Stop()
		}
		p.killTimer = time.AfterFunc(max(0, grace), p.kill)
	}
}

func (p *pod) kill() { p.killOnce.Do(func() { close(p.killed) }) }

func (p *pod) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// fail sets the reason why the whole pod fails. The first call wins.
func (p *pod) fail(reason, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == "" {
		p.reason, p.message = reason, message
	}
}

// later calls f after d, unless the pod's processes have ended before.
func (p *pod) later(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.timers = append(p.timers, time.AfterFunc(d, f))
	}
}

func (p *pod) event(kind, reason, message string) {
	p.m.recorder.Event(p.spec, kind, reason, message)
}

// Object returns the pod with its current status.
func (p *pod) Object() *corev1.Pod {
	o := p.spec.DeepCopy()
	o.Status = *p.status(p.over.Load())
	return o
}

// Container returns the container with the name; ok is false if there is none.
func (p *pod) Container(name string) (_ kubeletapi.Container, ok bool) {
	for _, c := range slices.Concat(p.inits, p.containers) {
		if c.spec.Name == name {
			return c, true
		}
	}
	return nil, false
}
