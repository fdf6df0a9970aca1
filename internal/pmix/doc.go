// Package pmix is the program that serves PMIx to the tasks of a step on one node
// with OpenPMIx's server library. It is a process beside the agent, so that the
// agent needs no C library. The two are connected by a socket and exchange frames
// of package step. The agents forward what the library requests from other nodes:
// fences, and requests for the data that single tasks have put.
//
// All files except this one need cgo, OpenPMIx's headers and the build tag pmix,
// which make build-light sets if the headers are installed.
package pmix
