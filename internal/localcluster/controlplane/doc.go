// Package controlplane runs Kubernetes' control plane inside this process:
// etcd, kube-apiserver, the controllers of kube-controller-manager that Berth
// needs, and JobSet's controllers and webhooks. It is the upstream code, called
// by its own options; nothing is reimplemented.
//
// One control plane at a time per process: the upstream packages keep global
// state.
package controlplane

import (
	"net"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Version of Kubernetes that is linked in. The linker must be told the same
// (see LinkerFlags in the Makefile), or clients cannot parse the server's version.
const Version = "v1.36.3"

// Config says where everything is. The folders exist.
type Config struct {
	// Dir keeps etcd's data and the files that components read their
	// settings from.
	Dir string
	PKI *pki.Store

	// API and Webhook are bound already; the control plane closes them.
	API     net.Listener
	Webhook net.Listener

	// URL of the API server as this process reaches it.
	URL string
	// Kubeconfig is the path of kube-controller-manager's kubeconfig, JobSet
	// the client configuration of JobSet's controllers; both of system:masters.
	Kubeconfig string
	JobSet     *rest.Config

	// Gate decides about BatchJobs; nil: webhooks do.
	Gate *Gate

	// Plain asks for a Kubernetes as others have it: with kube-scheduler, and
	// with the controllers and admission plugins that a local cluster of Berth
	// does without.
	Plain bool
}
