package task

import (
	"os/exec"
	"runtime"
	"sync"
)

// The kernel sends the signal of PR_SET_PDEATHSIG when the *thread* that
// forked ends (prctl(2)). So one thread that lives as long as the process
// starts every container.
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
