package task

import (
	"os/exec"
	"runtime"
	"sync"
)

// The kernel sends the signal of PR_SET_PDEATHSIG when the thread that forked ends, not the
// process (prctl(2)). Therefore a thread that exists as long as the process starts all
// containers.
var (
	spawnOnce  sync.Once
	spawnQueue chan spawnRequest
)

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

func spawn(cmd *exec.Cmd) error {
	spawnOnce.Do(func() {
		spawnQueue = make(chan spawnRequest)
		go func() {
			runtime.LockOSThread()
			for r := range spawnQueue {
				r.done <- r.cmd.Start()
			}
		}()
	})
	r := spawnRequest{cmd: cmd, done: make(chan error, 1)}
	spawnQueue <- r
	return <-r.done
}
