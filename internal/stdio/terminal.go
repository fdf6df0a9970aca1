package stdio

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// WindowSize returns the size of the terminal at In; ok is false if In is not a
// terminal.
func (s Streams) WindowSize() (rows, columns uint16, ok bool) {
	f, isFile := s.In.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	w, h, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0, false
	}
	return uint16(h), uint16(w), true
}

// Raw puts the terminal at In into raw mode, in which every byte passes through as
// it is typed. restore resets the terminal; it may be called more than once.
func (s Streams) Raw() (restore func(), err error) {
	f, ok := s.In.(*os.File)
	if !ok {
		return func() {}, unix.ENOTTY
	}
	fd := int(f.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return func() {}, err
	}
	return sync.OnceFunc(func() {
		_ = term.Restore(fd, old) // the terminal may have hung up
	}), nil
}

// terminalWidth returns the columns of the terminal at f, or 0 if it is not one.
func terminalWidth(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}
