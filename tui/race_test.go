//go:build race

package tui

// racing tells that the race detector is on, which takes memory of its own.
const racing = true
