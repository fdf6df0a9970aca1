// Package pmix is the program that speaks PMIx to the tasks of a step on one
// node, by OpenPMIx's own server library. It is a process beside the agent,
// which needs no C library so; the two share a socket and speak the frames of
// package step. What the library asks of its host, fences and what single
// tasks have put, the agents carry between the nodes.
//
// All but this file needs cgo, OpenPMIx's headers and the build tag pmix (make
// build-light sets it where they are there).
package pmix
