//go:build !linux || (!amd64 && !arm64)

// Package filelimit knows the soft limit of open files that the process was
// started with, on the systems that Berth is built for.
package filelimit

// AtStart does not know it here.
func AtStart() (soft uint64, ok bool) { return 0, false }
