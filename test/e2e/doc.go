// Package e2e runs sessions of users, written as scripts, on a whole local cluster made
// of the binaries in bin/: the real API server, the scheduler, process nodes and
// agents, and the commands that users call.
package e2e
