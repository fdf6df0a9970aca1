package e2e

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
	"github.com/berth-hpc/berth/internal/processnode"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
)

// roleVar makes the test binary run another role: the control plane, or process nodes that a
// test kills.
const roleVar = "BERTH_E2E_ROLE"

var (
	config *rest.Config
	client *kubernetes.Clientset
	state  string // the control plane's directory
	nodes  *nodeRun
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "control":
		exit(control(os.Args[len(os.Args)-1]))
	case "nodes":
		exit(nodesAlone(os.Args[len(os.Args)-2], os.Args[len(os.Args)-1]))
	}
	code, err := run(m)
	if err != nil {
		exit(err)
	}
	os.Exit(code)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// control runs a control plane until SIGTERM.
func control(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	admin, err := localcluster.Current()
	if err != nil {
		return err
	}
	c := localcluster.Config{
		StateDir: dir, BinDir: dir, Admin: admin, Progress: func(string) {}, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Parts: localcluster.Parts{Network: func(key string, isolated bool) (localcluster.Network, error) {
			return podnet.Open(podnet.Config{Key: key, Root: processnode.IsRoot(), Isolated: isolated})
		}},
	}
	return localcluster.Run(ctx, c, false, func(localcluster.Info) { fmt.Println("ready") })
}

// become starts this binary in another role and waits until it is ready.
func become(role string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", append([]string{"--"}, args...)...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		_ = cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("%s did not start: %q", role, line), cmd.Wait())
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
	return cmd, nil
}

func run(m *testing.M) (int, error) {
	if _, ok := processnode.Capabilities(); !ok {
		fmt.Println("SKIP: this machine forbids the namespaces that process nodes need")
		return 0, nil
	}
	var err error
	if state, err = os.MkdirTemp("", "berth-e2e-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(state)
	cmd, err := become("control", state)
	if err != nil {
		return 1, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	if config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(state, localcluster.FileAdmin)); err != nil {
		return 1, err
	}
	config.QPS, config.Burst = 500, 500
	client = kubernetes.NewForConfigOrDie(config)
	if nodes, err = startNodes(config, state, "main", "n1", "n2"); err != nil {
		return 1, err
	}
	code := m.Run()
	return code, nodes.stop()
}

// nodeRun is a Run of process nodes in this process.
type nodeRun struct {
	network *podnet.Network
	cancel  context.CancelFunc
	done    chan error
	dir     string
}

func (n *nodeRun) stop() error {
	n.cancel()
	return errors.Join(<-n.done, n.network.Close())
}

// startNodes runs nodes with the certificates of the control plane in dir.
func startNodes(config *rest.Config, dir, key string, names ...string) (*nodeRun, error) {
	own := filepath.Join(dir, "nodes-"+key)
	network, err := podnet.Open(podnet.Config{Key: own, Root: processnode.IsRoot()})
	if err != nil {
		return nil, err
	}
	store, err := pki.Open(filepath.Join(dir, "pki"), time.Now, pki.LeafLife)
	if err != nil {
		return nil, err
	}
	if err := store.Write("kubelet-"+key, store.CA, pki.Leaf{CommonName: "kubelet", Hosts: []string{"127.0.0.1"}}); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, "pki", "kubelet-"+key)
	serving, err := certfile.Open(base+".crt", base+".key")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(store.CA.CertPEM)
	api := strings.TrimPrefix(config.Host, "https://")
	reached, err := network.Relay(0, api)
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(reached, ":")
	var apiPort int
	if _, err := fmt.Sscan(port, &apiPort); err != nil {
		return nil, err
	}
	c := processnode.Config{
		Client: kubernetes.NewForConfigOrDie(config), Dir: own, Network: network,
		APIHost: host, APIPort: apiPort, ServingCert: serving.Server, ClientCA: pool,
		Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
	for _, name := range names {
		c.Nodes = append(c.Nodes, processnode.NodeConfig{
			Name: name, CPUs: 4, Memory: 4 << 30, Extended: map[string]int64{"gres.berth.hpc/gpu": 2},
			Labels: map[string]string{"feature.berth.hpc/fast": "true"},
		})
	}
	ready := make(chan struct{})
	c.Ready = func() { close(ready) }
	ctx, cancel := context.WithCancel(context.Background())
	n := &nodeRun{network: network, cancel: cancel, done: make(chan error, 1), dir: own}
	go func() { n.done <- processnode.Run(ctx, c) }()
	select {
	case <-ready:
		return n, nil
	case err := <-n.done:
		cancel()
		return nil, errors.Join(err, network.Close())
	}
}

// nodesAlone runs one node in this process, which a test kills.
func nodesAlone(dir, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, localcluster.FileAdmin))
	if err != nil {
		return err
	}
	n, err := startNodes(config, dir, name, name)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return n.stop()
}
