// Package realnode creates real Kubernetes nodes on one machine, for the end-to-end
// test: kubelets with a containerd each, every one in its own network, mount and
// host-name namespaces, connected by a bridge, beside the control plane of a local
// cluster.
//
// Run starts the calling program a second time in new namespaces (the site) and leaves
// nothing behind when that ends: no process, mount, control group or file. Open, called
// there, starts the nodes. It needs root.
//
// The network of the nodes enforces NetworkPolicies for TCP connections to pods
// (policy.go, enforce.go).
package realnode
