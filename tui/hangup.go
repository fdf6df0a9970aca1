package tui

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hangup calls fn when the terminal at r is gone. The signal for that reaches
// nobody who was started with SIGHUP ignored (nohup), and a program that waits
// for a key reads no further. It waits in the kernel, until the process ends.
func watchHangup(r io.Reader, fn func()) {
	f, ok := r.(*os.File)
	if !ok {
		return
	}
	fd := int32(f.Fd())
	go func() {
		for {
			// No events are asked for: errors and hang-ups are always told.
			fds := []unix.PollFd{{Fd: fd}}
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			case err != nil || fds[0].Revents&unix.POLLNVAL != 0:
				return // there is no telling
			default:
				fn()
				return
			}
		}
	}()
}
