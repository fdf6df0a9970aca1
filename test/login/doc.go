// Package login tests the login node together with a cluster: logging in to
// `berth up --login` and working there. It runs the built commands.
package login
