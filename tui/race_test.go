//go:build race

package tui

// racing reports whether the race detector is on, which needs memory itself.
const racing = true
