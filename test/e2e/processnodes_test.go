package e2e

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/processnode"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
	"github.com/berth-hpc/berth/internal/wire"
)

// processNodes run the pods of nodes that something else has created as processes of this
// machine, like the nodes of a local cluster.
type processNodes struct {
	k      *cloudCluster
	config processnode.Config // of each node, which has a directory of its own
	dir    string
	runs   map[string]*processNode // by the names of the Node objects
}

// processNode runs the pods of one node.
type processNode struct {
	stop context.CancelFunc
	done chan struct{}
}

// serveNodes makes every node of what brings nodes run its pods, until its object is deleted or
// the test ends.
func (k *cloudCluster) serveNodes() {
	t := k.t
	t.Helper()
	network, err := podnet.Open(podnet.Config{Key: k.state + "-served", Root: processnode.IsRoot()})
	if err != nil {
		t.Fatal(err)
	}
	s := &processNodes{k: k, dir: k.state + "-served", runs: map[string]*processNode{}}
	t.Cleanup(func() {
		s.stopAll(func(string) bool { return true })
		if err := errors.Join(network.Close(), os.RemoveAll(s.dir)); err != nil {
			t.Error(err)
		}
	})
	s.config = k.processNodeConfig(network)
	k.repeat(s.update)
}

// processNodeConfig returns what all nodes share: the certificates of the local cluster, and the
// address by which its pods reach the API server.
func (k *cloudCluster) processNodeConfig(network *podnet.Network) processnode.Config {
	t := k.t
	t.Helper()
	kube, err := clientcmd.BuildConfigFromFlags("", filepath.Join(k.state, localcluster.FileAdmin))
	if err != nil {
		t.Fatal(err)
	}
	pki := filepath.Join(k.state, "pki")
	serving, err := certfile.Open(filepath.Join(pki, "nodes.crt"), filepath.Join(pki, "nodes.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	api := k.apiForPods()
	port, err := strconv.Atoi(api.Port())
	if err != nil {
		t.Fatal(err)
	}
	return processnode.Config{
		Client: kubernetes.NewForConfigOrDie(kube), Network: network, APIHost: api.Hostname(), APIPort: port,
		ServingCert: serving.Server, ClientCA: pool, Log: t.Logf,
	}
}

// apiForPods returns the address of the API server for pods of the local cluster.
func (k *cloudCluster) apiForPods() *url.URL {
	args, err := localcluster.SchedulerArgs(k.state)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, a := range args {
		if address, ok := strings.CutPrefix(a, "--kube-url="); ok {
			u, err := url.Parse(address)
			if err != nil {
				k.t.Fatal(err)
			}
			return u
		}
	}
	k.t.Fatal("the flags of the scheduler do not say where pods reach the API server")
	return nil
}

// update starts nodes that have come, and stops those whose objects are gone.
func (s *processNodes) update() {
	exist := map[string]bool{}
	for _, n := range s.k.nodes() {
		exist[n.Name] = true
		if s.runs[n.Name] == nil && isRegistered(&n) {
			s.start(&n)
		}
	}
	s.stopAll(func(name string) bool { return !exist[name] })
}

// isRegistered reports whether Karpenter or Cluster API has seen the node. Until then a kubelet that
// replaces the list of taints, as that of a process node does, could undo their change of that list.
func isRegistered(n *corev1.Node) bool {
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "karpenter.sh/unregistered" || t.Key == "node.cluster.x-k8s.io/uninitialized"
	})
}

func (s *processNodes) start(n *corev1.Node) {
	c := s.config
	c.Dir = filepath.Join(s.dir, n.Name)
	node := processnode.NodeConfig{
		Name: n.Name, CPUs: n.Status.Allocatable.Cpu().Value(), Memory: n.Status.Allocatable.Memory().Value(),
		Labels: map[string]string{}, BootID: string(n.UID),
	}
	for key, value := range n.Labels { // a process node removes features that it does not have
		if strings.HasPrefix(key, wire.LabelFeature) {
			node.Labels[key] = value
		}
	}
	c.Nodes = []processnode.NodeConfig{node}
	ctx, cancel := context.WithCancel(context.Background())
	run := &processNode{stop: cancel, done: make(chan struct{})}
	s.runs[n.Name] = run
	go func() {
		defer close(run.done)
		if err := processnode.Run(ctx, c); err != nil {
			s.k.t.Errorf("process node %s: %v", n.Name, err)
		}
	}()
}

// stopAll stops the nodes with those names, all at the same time, and waits for them.
func (s *processNodes) stopAll(which func(name string) bool) {
	var wg sync.WaitGroup
	for name, run := range s.runs {
		if which(name) {
			delete(s.runs, name)
			run.stop()
			wg.Go(func() { <-run.done })
		}
	}
	wg.Wait()
}
