package session

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal. The master is non-blocking and in the runtime's
// poller, so that a thousand idle terminals take no thread; a library that calls
// (*os.File).Fd would make it blocking again.
type terminal struct {
	master, slave *os.File
	name          string
}

// openTerminal opens a terminal for the user: mode 620, owned by uid and the group tty,
// as other programs expect.
func openTerminal(uid int) (*terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	t := &terminal{master: os.NewFile(uintptr(fd), "/dev/ptmx")}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.master.Close()
		return nil, fmt.Errorf("pseudo-terminal: %w", err)
	}
	t.name = "/dev/pts/" + strconv.Itoa(n)
	peer, err := unix.Open(t.name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.master.Close()
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	t.slave = os.NewFile(uintptr(peer), t.name)
	if err := t.chown(peer, uid); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// chown changes the owner of the slave to the user. A server that is not root runs as
// the user.
func (t *terminal) chown(fd, uid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	// The mode first: afterwards the server is not the owner. The group is that of the
	// mount of devpts.
	if err := unix.Fchmod(fd, 0o620); err != nil {
		return fmt.Errorf("%s: chmod: %w", t.name, err)
	}
	if err := unix.Fchown(fd, uid, int(st.Gid)); err != nil {
		return fmt.Errorf("%s: chown: %w", t.name, err)
	}
	return nil
}

// close closes the terminal; the kernel then sends SIGHUP to its processes.
func (t *terminal) close() {
	t.master.Close()
	t.slave.Close()
}

// ptyRequest is the payload of pty-req (RFC 4254, 6.2).
type ptyRequest struct {
	Term          string
	Columns, Rows uint32
	Width, Height uint32 // in pixels
	Modes         string
}

// windowChange is the payload of window-change (6.7).
type windowChange struct {
	Columns, Rows, Width, Height uint32
}

// resize sets the window size; the kernel sends SIGWINCH to the foreground processes.
func (t *terminal) resize(w windowChange) error {
	size := unix.Winsize{Row: short(w.Rows), Col: short(w.Columns), Xpixel: short(w.Width), Ypixel: short(w.Height)}
	return t.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// sendBreak sends a break, which has no effect on a pseudo-terminal; the error reports
// whether it is one.
func (t *terminal) sendBreak() error {
	return t.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TCSBRK, 0) })
}

func (t *terminal) control(f func(fd int) error) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// short limits a size to the maximum of a terminal.
func short(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }
