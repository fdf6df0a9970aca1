// Package strerror words errors of the system as C programs do, and so Slurm.
package strerror

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Text returns the text that strerror(3) has for the system's error that err
// wraps, such as "No such file or directory". An error that wraps none keeps its
// own text, without the operation and the path of a file error.
func Text(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return capitalize(errno.Error())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return capitalize(syscall.ENOENT.Error())
	case errors.Is(err, fs.ErrPermission):
		return capitalize(syscall.EACCES.Error())
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return err.Error()
}

// Number returns the text that strerror(3) has for an error number of the system.
func Number(n int) string {
	if errno := syscall.Errno(n); n > 0 && unix.ErrnoName(errno) != "" {
		return capitalize(errno.Error())
	}
	return "Unknown error " + strconv.Itoa(n)
}

func capitalize(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
