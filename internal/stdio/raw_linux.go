package stdio

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// WindowSize is the size of the terminal at In; ok is false where In is none.
func (s Streams) WindowSize() (rows, columns uint16, ok bool) {
	f, isFile := s.In.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return w.Row, w.Col, true
}

// Raw has the terminal at In pass everything on as it is typed. restore, which
// may be called twice, puts it back.
func (s Streams) Raw() (restore func(), err error) {
	f, ok := s.In.(*os.File)
	if !ok {
		return func() {}, unix.ENOTTY
	}
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}, err
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return func() {}, err
	}
	return sync.OnceFunc(func() {
		unix.IoctlSetTermios(fd, unix.TCSETS, old) //nolint:errcheck // the terminal may be gone
	}), nil
}
