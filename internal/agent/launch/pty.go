package launch

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
)

// terminal is the agent's end of a task's terminal (srun --pty).
type terminal struct {
	mu     sync.Mutex
	master *os.File // nil: closed
}

// openTerminal opens a pseudo-terminal of the given size. slave is the task's
// end.
func openTerminal(size *step.WindowSize) (t *terminal, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		var n uint32
		if n, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN); err == nil {
			slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|unix.O_NOCTTY, 0)
		}
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	t = &terminal{master: master}
	t.resize(size)
	return t, slave, nil
}

// resize changes the size of the terminal; the kernel signals the task.
func (t *terminal) resize(w *step.WindowSize) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.master == nil || w.Rows == 0 || w.Columns == 0 {
		return
	}
	raw, err := t.master.SyscallConn()
	if err != nil {
		return
	}
	size := unix.Winsize{Row: w.Rows, Col: w.Columns}
	raw.Control(func(fd uintptr) { //nolint:errcheck // the old size remains
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) //nolint:errcheck // the old size remains
	})
}

// Write writes what the user of srun types.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	m := t.master
	t.mu.Unlock()
	if m == nil {
		return 0, os.ErrClosed
	}
	return m.Write(b)
}

// endOfFile is the character that ends the input of a terminal (Ctrl-D).
const endOfFile = 4

// Close ends the input. The terminal remains open for output.
func (t *terminal) Close() error {
	_, err := t.Write([]byte{endOfFile})
	return err
}

// hangUp closes the terminal.
func (t *terminal) hangUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.master != nil {
		t.master.Close()
		t.master = nil
	}
}

// openTerminal opens the terminal of a task as its three standard streams.
func (t *tasks) openTerminal(k *task) ([]*os.File, error) {
	term, slave, err := openTerminal(t.launch.Command.Terminal)
	if err != nil {
		return nil, fmt.Errorf("slurmstepd: error: %w", err)
	}
	t.mu.Lock() // resize reads it
	k.terminal = term
	t.mu.Unlock()
	if k.input != nil {
		k.input.file = term
		go k.input.copy()
	}
	o := &output{id: k.id, typ: step.FrameStdout, up: t.up, raw: true, file: term.master, done: make(chan struct{})}
	k.out = append(k.out, o)
	go func() {
		o.copy()
		term.hangUp()
	}()
	return []*os.File{slave, slave, slave}, nil
}
