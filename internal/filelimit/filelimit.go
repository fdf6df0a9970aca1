//go:build linux && (amd64 || arm64)

// Package filelimit knows the soft limit of open files that the process was
// started with. Package syscall raises it when the program begins and tells
// nobody what it was, so this package has to look before: packages begin in the
// order of their import paths once what they import has begun (Go
// specification, Program initialization), which is why this one imports
// nothing, and asks the kernel by a few lines of assembly.
package filelimit

// atStart is filled in before package syscall begins.
var atStart, known = read()

// AtStart is the soft limit of open files that the process was started with; ok
// is false where the kernel did not say. Unlimited is the greatest number.
func AtStart() (soft uint64, ok bool) { return atStart, known }

func read() (soft uint64, ok bool) {
	var limit [2]uint64 // struct rlimit64: soft, hard
	ok = prlimit(&limit) == 0
	return limit[0], ok
}

// prlimit is prlimit64(0, RLIMIT_NOFILE, NULL, limit).
//
//go:noescape
func prlimit(limit *[2]uint64) (errno uintptr)
