package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// reap is the first process of a pod: it runs the program once more, forwards signals,
// and reaps orphaned processes of users' sessions.
func reap(args []string, errs io.Writer) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGCHLD)
	p, err := os.StartProcess("/proc/self/exe", append([]string{"loginnode"}, args...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Env: os.Environ(),
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintln(errs, "loginnode: error:", err)
		return 1
	}
	for s := range signals {
		if s != syscall.SIGCHLD {
			_ = p.Signal(s)
			continue
		}
		for {
			var w syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if pid <= 0 {
				break
			}
			if pid == p.Pid && (w.Exited() || w.Signaled()) {
				if w.Signaled() {
					return 128 + int(w.Signal())
				}
				return w.ExitStatus()
			}
		}
	}
	return 1
}
