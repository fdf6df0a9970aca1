package task

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal opens a terminal in the container's /dev/pts, so that its processes find it by its
// name (ttyname(3)). The caller closes both ends.
func (t *Task) Terminal() (ours, theirs *os.File, err error) {
	if !t.options.Isolation.Namespaces || t.options.Spec.Root == "" {
		return pty.Open()
	}
	ours, err = os.OpenFile(fmt.Sprintf("/proc/%d/root/dev/pts/ptmx", t.Pid), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("the container's terminals: %w", err)
	}
	if theirs, err = peer(ours); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// peer opens the other end of a terminal, independent of its name in this mount namespace.
func peer(master *os.File) (*os.File, error) {
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	err2 := raw.Control(func(m uintptr) {
		if err = unix.IoctlSetPointerInt(int(m), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		var errno unix.Errno
		fd, _, errno = unix.Syscall(unix.SYS_IOCTL, m, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			err = errno
		}
	})
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("open the terminal's other end: %w", err)
	}
	return os.NewFile(fd, "terminal"), nil
}
