// Package daemon is the login node as a process: its configuration file, its
// signals, its ports. What the cluster knows comes as functions (Peers).
package daemon
