package spawn

import (
	"os"
	"syscall"
)

// Stop stops every process below this one, whatever its session or group. For
// pid 1 of a pod that is one system call, which the kernel makes exact: a process
// that forks meanwhile is stopped before its child exists (kill(2), pid -1, is all
// processes of the namespace but the caller).
func Stop() {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGSTOP) //nolint:errcheck // there may be none
		return
	}
	// Elsewhere, in tests: until a look finds nobody new. A stopped process makes no
	// more children.
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

// Continue lets the processes that Stop stopped go on.
func Continue() {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGCONT) //nolint:errcheck // there may be none
		return
	}
	Kill(syscall.SIGCONT, Everything)
}
