// Package e2e holds only tests: process nodes against a real API server, with
// the machine's own kernel.
package e2e
