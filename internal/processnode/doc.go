// Package processnode is the kubelet of a local cluster: it runs the pods that are
// bound to its nodes as processes of this machine. One Run serves any number of nodes
// with one informer, one bridge and one HTTPS port.
//
// A container is the host's root file system (image "berth.hpc/host") in its own
// namespaces, which package shim sets up. As root, every pod has its own network, and every
// container its own mount, pid, host-name and IPC namespaces, cgroup and user. Without
// root the kernel may not permit all of them; Capabilities lists what is missing.
//
// Intentional differences from a kubelet: there is one image; there are no service
// environment variables (enableServiceLinks has no effect); ConfigMaps and Secrets are
// read when the pod starts and not updated afterwards; sizeLimit of an emptyDir is not
// enforced; there are no image volumes, devices, or PVCs.
package processnode
