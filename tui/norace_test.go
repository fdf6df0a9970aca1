//go:build !race

package tui

// racing reports whether the race detector is on.
const racing = false
