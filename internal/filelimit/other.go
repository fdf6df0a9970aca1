//go:build !linux || (!amd64 && !arm64)

// Package filelimit returns the soft limit of open files with which the process was
// started, on the systems for which Berth is built.
package filelimit

// AtStart returns false: the limit is unknown on this system.
func AtStart() (soft uint64, ok bool) { return 0, false }
