//go:build linux && (amd64 || arm64)

// Package filelimit returns the soft limit of open files with which the process was
// started. Package syscall raises the limit during initialization and does not report
// the previous value, so this package must be initialized before it. Packages are
// initialized in the order of their import paths, after those that they import (Go
// specification, Program initialization). So this one imports nothing, and makes the
// system call in assembly.
package filelimit

// atStart is set before package syscall is initialized.
var atStart, known = read()

// AtStart returns the soft limit of open files with which the process was started. ok is
// false if it is unknown. The largest uint64 means unlimited.
func AtStart() (soft uint64, ok bool) { return atStart, known }

func read() (soft uint64, ok bool) {
	var limit [2]uint64 // struct rlimit64: soft, hard
	ok = prlimit(&limit) == 0
	return limit[0], ok
}

// prlimit calls prlimit64(0, RLIMIT_NOFILE, NULL, limit).
//
//go:noescape
func prlimit(limit *[2]uint64) (errno uintptr)
