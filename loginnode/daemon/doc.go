// Package daemon is the login node as a process: its configuration file, its signals,
// its ports. Functions that depend on the cluster are in Peers.
package daemon
