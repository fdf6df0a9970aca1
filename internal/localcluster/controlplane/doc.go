// Package controlplane runs Kubernetes' control plane inside this process: etcd,
// kube-apiserver, the controllers of kube-controller-manager that Berth needs, and
// JobSet's controllers and webhooks. It runs the upstream code with its own options.
//
// Only one control plane at a time can run in a process, because the upstream packages
// have global state.
package controlplane

import (
	"net"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/localcluster/inprocess"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Version of Kubernetes that is linked in. The linker needs the same version (see
// LinkerFlags in the Makefile), or clients cannot parse the server's version.
const Version = "v1.36.3"

// Config has the directories and files of the control plane. The directories exist.
type Config struct {
	// Dir has etcd's data and the configuration files of the components.
	Dir string
	PKI *pki.Store

	// EtcdServers are the URLs of an etcd that somebody else runs; empty: it runs in this
	// process.
	EtcdServers []string

	// AuthenticationConfig is a file with an AuthenticationConfiguration; "": none.
	AuthenticationConfig string

	// API and Webhook are bound already; the control plane closes them.
	API     net.Listener
	Webhook net.Listener
	// Socket is another listener of the API server, without TLS; nil: there is none.
	Socket net.Listener
	// InProcess serves the API to clients in this process.
	InProcess *inprocess.Server
	// TokenFile has the tokens of clients (token,user,uid,group).
	TokenFile string

	// URL of the API server for this process.
	URL string
	// Kubeconfig is the path of kube-controller-manager's kubeconfig, and Controllers the
	// transport that it uses in place of the one in that file. JobSet is the client
	// configuration of JobSet's controllers. All are of system:masters.
	Kubeconfig  string
	Controllers http.RoundTripper
	JobSet      *rest.Config

	// Gate decides about BatchJobs; nil: webhooks do.
	Gate *Gate

	// Plain starts a plain Kubernetes: with kube-scheduler, and with the controllers
	// and admission plugins that a local cluster of Berth does not need.
	Plain bool
}
