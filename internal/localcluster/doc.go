// Package localcluster is a whole Berth cluster in one process on one machine:
// Kubernetes' control plane, JobSet, Berth's scheduler and process nodes, with
// certificates, configuration objects and users. It needs no root; as root,
// other users of the machine can be users of the cluster.
//
// All state that must survive is in one state directory, which one process at a time may
// use. Nothing listens beyond loopback and the pods' own bridge.
package localcluster
