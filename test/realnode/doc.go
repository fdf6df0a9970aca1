// Package realnode makes real Kubernetes nodes on one machine, for the
// end-to-end test: kubelets with a containerd each, every one in a network,
// mount and host-name namespace of its own, joined by a bridge, beside the
// control plane of a local cluster.
//
// Run starts the calling program a second time in fresh namespaces (the site)
// and leaves nothing behind when that ends: no process, mount, control group
// or file. Open, called there, brings the nodes up. It needs root.
//
// The network of the nodes keeps NetworkPolicies about TCP connections that
// come in to pods (policy.go, enforce.go).
package realnode
