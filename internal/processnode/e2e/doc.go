// Package e2e contains only tests: of process nodes with a real API server and the
// machine's kernel.
package e2e
