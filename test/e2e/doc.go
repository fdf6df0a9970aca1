// Package e2e runs users' sessions, written as scripts, against a whole local
// cluster made of the binaries in bin/: the real API server, the scheduler,
// process nodes and agents, and the commands as users call them.
package e2e
