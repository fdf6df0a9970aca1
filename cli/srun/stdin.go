package srun

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// foregroundPoll is how often srun checks whether it may read its terminal.
const foregroundPoll = 200 * time.Millisecond

// foregroundReader reads a terminal only while srun is in the terminal's
// foreground. The kernel would stop a background process that reads it, and with
// it the output of the step.
type foregroundReader struct {
	file       *os.File
	foreground func() bool
	interval   time.Duration
}

// input returns what srun reads for its tasks.
func (o *Options) input() io.Reader {
	file, ok := o.p.In.(*os.File)
	if !ok {
		return o.p.In
	}
	fd := int(file.Fd())
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
		return file // not the controlling terminal
	}
	return &foregroundReader{file: file, interval: foregroundPoll, foreground: func() bool {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err != nil || group == unix.Getpgrp()
	}}
}

// Read waits until there is input while srun is in the foreground.
func (r *foregroundReader) Read(b []byte) (int, error) {
	for {
		if !r.foreground() {
			time.Sleep(r.interval)
			continue
		}
		fds := []unix.PollFd{{Fd: int32(r.file.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(r.interval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
		if n > 0 && r.foreground() { // srun may have been moved to the background meanwhile
			return r.file.Read(b)
		}
	}
}
