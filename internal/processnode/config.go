package processnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/berth-hpc/berth/internal/processnode/podnet"
)

// HostImage is the one image that process nodes run: the machine's own root
// file system.
const HostImage = "berth.hpc/host"

// KubeletClientName is the common name that the API server's client
// certificate towards kubelets carries, unless Config says otherwise.
const KubeletClientName = "kube-apiserver-kubelet-client"

// Config describes the process nodes of one local cluster.
type Config struct {
	// Client talks to the API server as somebody who may do what a node does
	// and make tokens for service accounts (the local cluster's admin). Its
	// QPS limits are its owner's business.
	Client kubernetes.Interface
	Nodes  []NodeConfig

	// Dir holds logs, volumes and what is needed to clean up after a crash.
	// It is made 0711 if missing; nobody else may use it meanwhile.
	Dir string
	// Network gives pods their addresses; the caller opens and closes it.
	Network *podnet.Network

	// APIHost and APIPort, as pods reach the API server, become
	// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
	APIHost string
	APIPort int

	// Listen is the address of the kubelet API of all nodes; empty:
	// 127.0.0.1 and a free port. Only clients with a certificate from
	// ClientCA that carries KubeletClient as its common name (empty:
	// KubeletClientName) or the organisation system:masters are served.
	Listen        string
	ServingCert   tls.Certificate
	ClientCA      *x509.CertPool
	KubeletClient string

	// StopGrace is the time between SIGTERM and SIGKILL for running pods when Run
	// stops; 0: no SIGTERM.
	StopGrace time.Duration
	// Log takes one line for people; nil: nothing is logged.
	Log func(format string, args ...any)
	// Ready is called once, when every node is registered and Ready; nil: not.
	Ready func()
}

// NodeConfig is one node.
type NodeConfig struct {
	Name string
	// CPUs and Memory (bytes) are capacity and allocatable alike. They are
	// promises to the scheduler; several nodes may promise the same CPUs.
	CPUs   int64
	Memory int64
	// Pods is the most pods at a time; 0: 110.
	Pods int64
	// Extended resources by name, such as gres.berth.hpc/gpu.
	Extended map[string]int64
	// Labels and Annotations are set on the Node; others that are there stay.
	Labels      map[string]string
	Annotations map[string]string
}

func (c *Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("process nodes: no client")
	case c.Dir == "":
		return errors.New("process nodes: no directory")
	case c.Network == nil:
		return errors.New("process nodes: no network")
	case len(c.ServingCert.Certificate) == 0 || c.ClientCA == nil:
		return errors.New("process nodes: no certificates for the kubelet API")
	}
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		if n.Name == "" || seen[n.Name] {
			return fmt.Errorf("process nodes: node name %q is empty or taken twice", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// Run registers the nodes and runs the pods bound to them until ctx ends; then
// it stops every pod, says so in their status as far as the API server still
// answers, and gives back what it took from the machine. Processes of pods
// never outlive it, however this process ends. Pods that a former Run left
// unfinished are set Failed.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	return run(ctx, &cfg)
}
