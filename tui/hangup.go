package tui

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// watchHangup calls fn when the terminal at r hangs up. A process that was started
// with SIGHUP ignored (nohup) gets no signal for that, and a program that waits
// for a key does not notice. The goroutine waits in poll(2) until the process ends.
func watchHangup(r io.Reader, fn func()) {
	f, ok := r.(*os.File)
	if !ok {
		return
	}
	fd := int32(f.Fd())
	go func() {
		for {
			// No events are requested: poll always reports errors and hang-ups.
			fds := []unix.PollFd{{Fd: fd}}
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			case err != nil || fds[0].Revents&unix.POLLNVAL != 0:
				return // poll does not support this file
			default:
				fn()
				return
			}
		}
	}()
}
