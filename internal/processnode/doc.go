// Package processnode is the kubelet of a local cluster: it runs the pods that
// are bound to its nodes as processes of this machine. One Run serves any
// number of nodes with one informer, one bridge and one HTTPS port.
//
// A container is the host's root file system (image "berth.hpc/host") seen
// through namespaces of its own: package shim becomes it. As root every pod
// has its own network, and every container its mount, pid, host-name and IPC
// namespaces, cgroup and user; without root what the kernel allows, which
// Capabilities says in words.
//
// What differs from a kubelet on purpose: one image; no service environment
// variables (enableServiceLinks is taken and does nothing); ConfigMaps and
// Secrets are read when the pod starts and not followed afterwards; sizeLimit
// of an emptyDir is not enforced; no image volumes, devices, or PVCs.
package processnode
