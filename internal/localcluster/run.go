package localcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/deploy"
	"github.com/berth-hpc/berth/internal/localcluster/controlplane"
	"github.com/berth-hpc/berth/internal/localcluster/inprocess"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// startTimeout is how long the start of everything may take; usually it takes seconds.
const startTimeout = 3 * time.Minute

// Info describes a running cluster.
type Info struct {
	// Server is the API server's URL, Kubeconfig the administrator's file.
	Server, Kubeconfig string
	// KubeURL and PodURL are the API server and the API role for pods; PublicURL is the
	// API role on this machine.
	KubeURL, PodURL, PublicURL string
	Missing                    []string
	// Login is the command to log in to the login node; "": there is none.
	Login string
}

// cluster is a cluster that is being started or runs.
type cluster struct {
	Config
	state *state
	// types reads the resource types, once.
	types   func() ([]*unstructured.Unstructured, error)
	network Network
	pki     *pki.Store
	info    Info

	issued      time.Time // when the certificates were signed last
	stopRenewal func()    // nil: renewal has not been started

	api, hook, queue net.Listener
	socket           net.Listener      // of the API server; nil: there is none
	inProcess        inprocess.Server  // of the API, for the parts of this process
	tokens           map[string]string // for socket and inProcess, by the names of their users
	admin            *rest.Config
	plane            *controlplane.Plane
	jobs             *controlplane.Gate

	kubeconfigs sync.Mutex // guards homes and machine
	// homes are the users' kubeconfigs. They are deleted when the cluster stops, so
	// that the users' commands report that, or find another cluster.
	homes []home
	// machine are the kubeconfigs that commands find by the user's uid; they are deleted,
	// too.
	machine []machineFile

	failed chan error
	parts  []*part // in the order they were started
	mu     sync.Mutex
}

// home is a kubeconfig in a user's home.
type home struct {
	user Account
	data []byte
}

// part is a peer that runs beside the control plane.
type part struct {
	stop context.CancelFunc
	done chan struct{}
}

// Run runs a cluster until ctx ends; then it stops everything in order and returns nil.
// ready is called once, when the cluster accepts jobs. With fresh, the state directory is
// emptied first.
func Run(ctx context.Context, c Config, fresh bool, ready func(Info)) error {
	st, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer st.close()
	if fresh {
		c.Progress("wiping the state of earlier runs")
		if err := st.wipe(); err != nil {
			return err
		}
	}
	c.Log.Info("starting", "state", c.StateDir)
	k := &cluster{Config: c, state: st, failed: make(chan error, 8)}
	defer k.stop()
	defer c.Stopping()
	if err := k.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting
		}
		return err
	}
	if err := k.record(true); err != nil {
		return err
	}
	k.Log.Info("ready")
	ready(k.info)
	select {
	case <-ctx.Done():
		return nil
	case err := <-k.plane.Failed():
		return err
	case err := <-k.failed:
		return err
	}
}

func (k *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if k.Parts.Check != nil && len(k.Nodes) > 0 {
		var err error
		if k.info.Missing, err = k.Parts.Check(); err != nil {
			return err
		}
	}
	if err := k.record(false); err != nil {
		return err
	}
	if err := k.listen(); err != nil {
		return err
	}
	if err := k.certify(); err != nil {
		return err
	}
	k.stopRenewal = k.startRenewal()
	k.Progress("starting the control plane")
	k.types = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return manifests(deploy.CRDs) })
	go func() { _, _ = k.types() }() // while the API server comes up
	if err := os.MkdirAll(k.state.path("control"), 0o700); err != nil {
		return err
	}
	var err error
	k.plane, err = controlplane.Start(ctx, controlplane.Config{
		Dir: k.state.path("control"), PKI: k.pki, API: k.api, Webhook: k.hook,
		URL: k.info.Server, Kubeconfig: k.state.path(fileControllers), JobSet: k.client(identityJobSet), Plain: k.Plain,
		InProcess: &k.inProcess, Controllers: k.inProcess.Transport(k.tokens[identityKCM]),
		Gate: k.gate(), EtcdServers: k.EtcdServers, Socket: k.socket, TokenFile: k.state.path(fileTokens),
		AuthenticationConfig: k.AuthenticationConfig,
	}, k.admin, zapLogger(k.Log))
	if err != nil {
		return err
	}
	k.Log.Info("the API server is serving")
	if err := k.setUp(ctx); err != nil {
		return err
	}
	return k.writeShape()
}

// record writes the id of this process.
func (k *cluster) record(ready bool) error {
	started, err := startTicks(os.Getpid())
	if err != nil {
		return err
	}
	return k.state.writeJSON(fileProcess, Process{
		PID: os.Getpid(), Started: started, Ready: ready,
		Server: k.info.Server, Nodes: len(k.Nodes), Missing: k.info.Missing,
	})
}

// listen opens the pods' network and binds every port.
func (k *cluster) listen() error {
	hosts := []string{"127.0.0.1"}
	gateway := netip.MustParseAddr("127.0.0.1")
	if k.Parts.Network != nil {
		var err error
		if k.network, err = k.Parts.Network(k.StateDir, k.Isolated); err != nil {
			return fmt.Errorf("network of the pods: %w", err)
		}
		if err := k.network.Egress(); err != nil {
			k.info.Missing = append(k.info.Missing,
				fmt.Sprintf("jobs reach this machine but nothing beyond it: %v", err))
		}
		gateway = k.network.Gateway()
	}
	if !gateway.IsLoopback() {
		hosts = append(hosts, gateway.String())
	}
	old := k.state.readPorts()
	var err error
	if k.api, err = listen(hosts, "--api-port", k.APIPort, old.API); err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	if k.hook, err = listen(hosts[:1], "", 0, old.Webhook); err != nil {
		return err
	}
	queueHosts := hosts
	if k.Parts.Scheduler == nil { // it binds loopback itself
		queueHosts = hosts[:1]
	}
	if k.queue, err = listen(queueHosts, "", 0, old.Queue); err != nil {
		return err
	}
	p := ports{API: portOf(k.api), Webhook: portOf(k.hook), Queue: portOf(k.queue), Login: old.Login}
	url := func(host netip.Addr, port int) string {
		return "https://" + net.JoinHostPort(host.String(), strconv.Itoa(port))
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	k.info.Server, k.info.PublicURL = url(loopback, p.API), url(loopback, p.Queue)
	k.info.KubeURL, k.info.PodURL = url(gateway, p.API), url(gateway, p.Queue)
	k.info.Kubeconfig = k.state.path(FileAdmin)
	if err := k.listenSocket(); err != nil {
		return fmt.Errorf("socket of the API server: %w", err)
	}
	return k.state.writeJSON(filePorts, p)
}

// setUp sets up the cluster in the API server: types, controllers, users, partitions,
// scheduler, nodes; concurrently where they do not depend on each other.
func (k *cluster) setUp(ctx context.Context) error {
	a, err := newAPI(k.admin)
	if err != nil {
		return err
	}
	k.plane.StartControllers()
	if k.Plain {
		return a.awaitPath(ctx, "/readyz")
	}
	if err := bootstrap(ctx, a, k.types, k.gate() != nil); err != nil {
		return fmt.Errorf("resource types and roles: %w", err)
	}
	k.Log.Info("resource types are served")
	k.Progress("starting JobSet, scheduler and nodes")
	outer := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := k.plane.StartJobSet(ctx); err != nil {
			return err
		}
		return registerJobSet(ctx, a, "https://"+k.hook.Addr().String(), k.pki.CA.CertPEM)
	})
	g.Go(func() error { return configure(ctx, a, k.Config) })
	g.Go(func() error { return k.addUsers(ctx, a) })
	g.Go(func() error { return k.permitNamespaces(ctx, a) })
	g.Go(func() error {
		if err := k.removeOldNodes(ctx, a); err != nil {
			return err
		}
		return k.startNodes(ctx)
	})
	g.Go(func() error {
		// Kubernetes' own roles, with which the scheduler's identity may discover APIs,
		// are created a moment after the server's start.
		if err := a.awaitPath(ctx, "/readyz/poststarthook/rbac/bootstrap-roles"); err != nil {
			return err
		}
		return k.startScheduler(ctx)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if err := k.awaitScheduler(outer, a); err != nil || !k.Login {
		return err
	}
	k.Progress("starting the login node")
	return k.startLogin(outer, a)
}

func (k *cluster) addUsers(ctx context.Context, a *api) error {
	if err := addUser(ctx, a, k.Admin, "Administrator"); err != nil {
		return fmt.Errorf("user %s: %w", k.Admin.Name, err)
	}
	for _, u := range k.Users {
		if u.Name == k.Admin.Name {
			continue
		}
		if err := addUser(ctx, a, u, "None"); err != nil {
			return fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	return k.writeUserKubeconfigs()
}

// writeUserKubeconfigs writes the kubeconfigs of users where their commands find them.
func (k *cluster) writeUserKubeconfigs() error {
	k.kubeconfigs.Lock()
	defer k.kubeconfigs.Unlock()
	for _, u := range k.Users {
		if u.Name == k.Admin.Name {
			continue
		}
		data, err := k.userKubeconfig(u)
		if err != nil {
			return err
		}
		if err := writeHome(u, data); err != nil {
			return fmt.Errorf("kubeconfig of user %s: %w", u.Name, err)
		}
		k.homes = append(k.homes, home{u, data})
		if err := k.publish(u, data); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(k.info.Kubeconfig)
	if err != nil {
		return err
	}
	return k.publish(k.Admin, admin)
}

// stop stops everything in reverse order. The control plane stops last, so that the
// others can still write their final states.
func (k *cluster) stop() {
	if k.stopRenewal != nil {
		k.stopRenewal()
	}
	for i := len(k.parts) - 1; i >= 0; i-- {
		k.parts[i].stop()
		<-k.parts[i].done
	}
	for _, h := range k.homes {
		if err := removeHome(h.user, h.data); err != nil {
			k.Log.Warn("removing a user's kubeconfig", "user", h.user.Name, "error", err)
		}
	}
	if err := withdraw(k.machine); err != nil {
		k.Log.Warn("removing kubeconfigs from /run", "error", err)
	}
	if k.plane != nil {
		k.plane.Stop()
	}
	for _, l := range []net.Listener{k.api, k.hook, k.queue, k.socket} {
		if l != nil {
			_ = l.Close()
		}
	}
	if k.network != nil {
		if err := k.network.Close(); err != nil {
			k.Log.Warn("closing the pods' network", "error", err)
		}
	}
}

// startPart runs f until the cluster stops, and returns when f is ready or fails.
func (k *cluster) startPart(ctx context.Context, name string, f func(context.Context, func()) error) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{stop: stop, done: make(chan struct{})}
	k.mu.Lock()
	k.parts = append(k.parts, p)
	k.mu.Unlock()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(p.done)
		err := f(run, sync.OnceFunc(func() { close(ready) }))
		if run.Err() == nil {
			if err == nil {
				err = errors.New("ended")
			}
			err = fmt.Errorf("%s: %w", name, err)
			ended <- err
			k.failed <- err
		}
	}()
	select {
	case <-ready:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s is not ready: %w", name, ctx.Err())
	}
}

func (k *cluster) startNodes(ctx context.Context) error {
	if k.Parts.Nodes == nil || len(k.Nodes) == 0 {
		return nil
	}
	if err := writeRebootProgram(k.StateDir); err != nil {
		return err
	}
	c := NodesConfig{
		Kube: k.admin, Nodes: k.Nodes, Dir: nodesDir(k.StateDir), CloudDir: cloudDir(k.StateDir), Network: k.network,
		RebootDir: rebootDir(k.StateDir),
		APIHost:   k.network.Gateway().String(), APIPort: portOf(k.api),
		CertFile: k.pki.Path(certNodes + ".crt"), KeyFile: k.pki.Path(certNodes + ".key"),
		CA: k.pki.CA.CertPEM, Log: k.log("nodes"),
	}
	return k.startPart(ctx, "process nodes", func(ctx context.Context, ready func()) error {
		return k.Parts.Nodes(ctx, c, ready)
	})
}

func (k *cluster) log(part string) *slog.Logger { return k.Log.With("part", part) }
