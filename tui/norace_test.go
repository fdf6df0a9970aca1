//go:build !race

package tui

// racing tells that the race detector is on.
const racing = false
