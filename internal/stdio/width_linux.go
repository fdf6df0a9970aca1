package stdio

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns the columns of the terminal f is, or 0.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
