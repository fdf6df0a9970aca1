// Package deb tests the packages of a release: run.sh installs one into a clean
// Debian (make e2e-deb), and the tests here read goreleaser.yaml.
package deb
