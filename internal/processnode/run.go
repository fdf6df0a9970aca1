package processnode

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/kubeletapi"
	"github.com/berth-hpc/berth/internal/processnode/podenv"
	"github.com/berth-hpc/berth/internal/processnode/registration"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// finalStatusTimeout limits the time for writing the statuses of the pods after Run was
// stopped.
const finalStatusTimeout = 3 * time.Second

// manager runs the pods of all nodes.
type manager struct {
	cfg      *Config
	nodes    map[string]*NodeConfig
	iso      task.Isolation
	cgroups  *cgroups.Manager // nil: none
	objects  *podenv.Objects
	recorder record.EventRecorder
	hostIP   string
	port     int32
	owner    string // see the function owner
	root     string // an empty directory: mount point of containers' roots
	shm      string // directory in memory for pods; empty: none

	api  context.Context // of requests; ends finalStatusTimeout after Run's
	wait sync.WaitGroup

	mu       sync.Mutex
	pods     map[types.UID]*pod
	reboots  map[string]chan struct{} // of running nodes, by name: each value makes the node restart
	stopping bool
}

func run(ctx context.Context, cfg *Config) error {
	m := &manager{
		cfg: cfg, nodes: map[string]*NodeConfig{}, pods: map[types.UID]*pod{}, objects: podenv.NewObjects(cfg.Client),
		reboots: map[string]chan struct{}{},
	}
	for i := range cfg.Nodes {
		m.nodes[cfg.Nodes[i].Name] = &cfg.Nodes[i]
	}
	if err := m.prepare(); err != nil {
		return err
	}
	defer m.cleanUp()
	api, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m.api = api

	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: cfg.Client.CoreV1().Events("")})
	m.recorder = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet"})

	listener, err := m.listen()
	if err != nil {
		return err
	}
	server := m.kubelet()
	m.wait.Go(func() { _ = server.Serve(tls.NewListener(listener, server.TLSConfig)) })

	err = m.watchPods(ctx)
	m.stopAll()
	time.AfterFunc(finalStatusTimeout, cancel)
	m.mu.Lock()
	pods := m.snapshot()
	m.mu.Unlock()
	for _, p := range pods {
		<-p.done
	}
	cancel()
	_ = server.Close()
	m.wait.Wait()
	return err
}

// prepare creates directories and control groups, and removes leftovers of a crash.
func (m *manager) prepare() error {
	iso, why := task.Detect()
	m.iso = iso
	if !iso.Namespaces {
		return fmt.Errorf("process nodes need namespaces, which this machine does not permit: %s", why)
	}
	m.owner = owner(m.cfg.Dir)
	name := ownerName(m.cfg.Dir)
	m.root = filepath.Join(m.cfg.Dir, "root")
	for _, dir := range []string{m.cfg.Dir, m.root, m.podsDir()} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	if iso.Root {
		var err error
		if m.cgroups, err = cgroups.Open(name); err != nil {
			m.log("no control groups: %v", err)
		}
	}
	m.shm = sharedDir(name)
	if err := os.RemoveAll(m.shm); err == nil {
		err = os.Mkdir(m.shm, 0o700)
		if err != nil {
			m.shm = ""
		}
	}
	return nil
}

func (m *manager) podsDir() string { return filepath.Join(m.cfg.Dir, "pods") }

// cleanUp releases what prepare created, except the directories in Dir.
func (m *manager) cleanUp() {
	m.cgroups.Close()
	if m.shm != "" {
		_ = os.RemoveAll(m.shm)
	}
}

func (m *manager) log(format string, args ...any) {
	if m.cfg.Log != nil {
		m.cfg.Log(format, args...)
	}
}

// listen opens the kubelet API's port, which the nodes' status names.
func (m *manager) listen() (net.Listener, error) {
	addr := m.cfg.Listen
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("kubelet API: %w", err)
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	m.hostIP, m.port = at.Addr().String(), int32(at.Port())
	return l, nil
}

// watchPods registers the nodes and watches their pods until ctx ends.
func (m *manager) watchPods(ctx context.Context) error {
	informer := m.informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, first bool) { m.observe(obj.(*corev1.Pod), first) },
		UpdateFunc: func(_, obj any) { m.observe(obj.(*corev1.Pod), false) },
		DeleteFunc: m.deleted,
	})
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	m.wait.Go(func() { informer.RunWithContext(inner) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	m.removeDirs(informer.GetStore())
	if err := m.registerAll(inner); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if m.cfg.Ready != nil {
		m.cfg.Ready()
	}
	<-ctx.Done()
	return nil
}

// informer returns an informer of all pods that have a node: one watch for all nodes.
func (m *manager) informer() cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(m.cfg.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}),
		informers.WithTransform(func(obj any) (any, error) {
			if p, ok := obj.(*corev1.Pod); ok {
				p.ManagedFields = nil
			}
			return obj, nil
		}))
	return factory.Core().V1().Pods().Informer()
}

// registerAll registers the nodes, a few at a time.
func (m *manager) registerAll(ctx context.Context) error {
	registrar := &registration.Registrar{
		Client: m.cfg.Client, Owner: m.owner, HostIP: m.hostIP, Port: m.port, Log: m.log,
	}
	if err := registrar.RemoveOthers(ctx, m.running()); err != nil {
		return err
	}
	if m.cfg.RebootDir != "" {
		m.wait.Go(func() { m.followReboots(ctx) })
	}
	always := 0
	const atOnce = 8
	slots := make(chan struct{}, atOnce)
	errs := make(chan error, len(m.nodes))
	for _, n := range m.nodes {
		if n.Cloud {
			m.wait.Go(func() { m.followCloud(ctx, registrar, n) })
			continue
		}
		always++
		m.wait.Go(func() {
			slots <- struct{}{}
			config := *n
			config.BootID = newBootID()
			node, err := registrar.Register(ctx, &config)
			<-slots
			errs <- err
			if err == nil {
				m.keepRunning(ctx, registrar, &config, node)
			}
		})
	}
	var all []error
	for range always {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// observe handles a new or changed pod. first is true for pods that existed before this Run
// started to watch.
func (m *manager) observe(spec *corev1.Pod, first bool) {
	node, ours := m.nodes[spec.Spec.NodeName]
	if !ours {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.pods[spec.UID]
	over := spec.Status.Phase == corev1.PodSucceeded || spec.Status.Phase == corev1.PodFailed
	switch {
	case known:
		p.update(spec)
	case m.stopping:
	case over && spec.DeletionTimestamp != nil, first && !over && m.startedBefore(spec):
		m.wait.Go(func() { m.cleanUpPod(spec) })
	case !over:
		p = m.newPod(spec, node)
		m.pods[spec.UID] = p
		p.refusal = m.admit(p)
		m.wait.Go(p.run)
		if spec.DeletionTimestamp != nil {
			p.update(spec)
		}
	}
}

func (m *manager) deleted(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	spec, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.pods[spec.UID]
	if !known {
		if _, ours := m.nodes[spec.Spec.NodeName]; ours {
			_ = os.RemoveAll(filepath.Join(m.podsDir(), string(spec.UID)))
		}
		return
	}
	delete(m.pods, spec.UID)
	// The deletion was forced, so all of its processes must end.
	p.objectDeleted()
}

// stopAll ends every pod because the nodes are being stopped.
func (m *manager) stopAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
	for _, p := range m.pods {
		p.nodeStopped()
	}
}

// snapshot returns the pods. It is called with mu held.
func (m *manager) snapshot() []*pod {
	pods := make([]*pod, 0, len(m.pods))
	for _, p := range m.pods {
		pods = append(pods, p)
	}
	return pods
}

// find returns the running or ended pod with the given name, or nil.
func (m *manager) find(namespace, name string) *pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pods {
		if p.spec.Namespace == namespace && p.spec.Name == name {
			return p
		}
	}
	return nil
}

// kubelet returns the server of the kubelet API.
func (m *manager) kubelet() *http.Server {
	return kubeletapi.New(kubeletapi.Config{
		Certificate: m.cfg.ServingCert, ClientCA: m.cfg.ClientCA,
		Client: cmp.Or(m.cfg.KubeletClient, KubeletClientName),
		Pods: func() []kubeletapi.Pod {
			m.mu.Lock()
			defer m.mu.Unlock()
			var pods []kubeletapi.Pod
			for _, p := range m.pods {
				pods = append(pods, p)
			}
			return pods
		},
		Find: func(namespace, name string) (kubeletapi.Pod, bool) {
			p := m.find(namespace, name)
			return p, p != nil
		},
	})
}
