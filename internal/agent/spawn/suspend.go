package spawn

import (
	"os"
	"syscall"
)

// Stop stops all descendants, regardless of session and group. For pid 1 of a pod this
// is a single system call, which also stops processes that are forking (kill(2): pid -1
// means all processes of the namespace except the caller).
func Stop() {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGSTOP) //nolint:errcheck // there may be none
		return
	}
	// Elsewhere, as in tests, repeat until no new process is found: a stopped process
	// does not fork.
	seen := map[int]bool{}
	for grew := true; grew; {
		grew = false
		Kill(syscall.SIGSTOP, func(p Proc) bool {
			grew = grew || !seen[p.PID]
			seen[p.PID] = true
			return true
		})
	}
}

// Continue continues the processes that Stop has stopped.
func Continue() {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGCONT) //nolint:errcheck // there may be none
		return
	}
	Kill(syscall.SIGCONT, Everything)
}
