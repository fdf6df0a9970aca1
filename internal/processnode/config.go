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
	"github.com/berth-hpc/berth/internal/processnode/registration"
)

// HostImage is the only image of process nodes: the machine's own root file system.
const HostImage = "berth.hpc/host"

// KubeletClientName is the default common name of the API server's client certificate
// for kubelets.
const KubeletClientName = "kube-apiserver-kubelet-client"

// Config describes the process nodes of one local cluster.
type Config struct {
	// Client is a client of the API server with the permissions of nodes and with that to
	// create tokens of service accounts (the local cluster's administrator). The caller
	// sets its rate limits.
	Client kubernetes.Interface
	Nodes  []NodeConfig

	// Dir contains logs, volumes and the data for the cleanup after a crash. It is created
	// with mode 0711 if it is missing. Only one process at a time may use it.
	Dir string
	// CloudDir is the directory in which a file with the name of a node makes that node run, if
	// Node.Cloud is set.
	CloudDir string
	// RebootDir is the directory in which a file with the name of a node makes that node
	// restart, as a machine that reboots; the file is removed. "": no node restarts.
	RebootDir string
	// Network assigns addresses to pods; the caller opens and closes it.
	Network *podnet.Network

	// APIHost and APIPort, the API server's address for pods, become
	// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
	APIHost string
	APIPort int

	// Listen is the address of the kubelet API of all nodes; empty: 127.0.0.1 and a
	// free port. It serves only clients with a certificate from ClientCA with
	// KubeletClient as its common name (empty: KubeletClientName) or the organization
	// system:masters. ServingCert returns its certificate for each connection, as
	// tls.Config.GetCertificate.
	Listen        string
	ServingCert   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCA      *x509.CertPool
	KubeletClient string

	// StopGrace is the time between SIGTERM and SIGKILL for running pods when Run
	// stops; 0: no SIGTERM.
	StopGrace time.Duration
	// Log is called for each line that users should see; nil: nothing is logged.
	Log func(format string, args ...any)
	// Ready, if not nil, is called once, when every node is registered and Ready.
	Ready func()
}

// NodeConfig is one node.
type NodeConfig = registration.Node

func (c *Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("process nodes: no client")
	case c.Dir == "":
		return errors.New("process nodes: no directory")
	case c.Network == nil:
		return errors.New("process nodes: no network")
	case c.ServingCert == nil || c.ClientCA == nil:
		return errors.New("process nodes: no certificates for the kubelet API")
	}
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		if n.Name == "" || seen[n.Name] {
			return fmt.Errorf("process nodes: node name %q is empty or not unique", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// Run registers the nodes and runs the pods bound to them until ctx ends. Then it stops
// every pod, updates their statuses if the API server still responds, and releases the
// resources of the machine. Processes of pods never outlive this process, however it
// ends. Pods that a previous Run did not finish become Failed.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	return run(ctx, &cfg)
}
