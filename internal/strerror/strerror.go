// Package strerror returns the texts of system errors that strerror(3) has, and that
// Slurm therefore prints.
package strerror

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Text returns the text that strerror(3) has for the system error that err wraps, such
// as "No such file or directory". For an error that wraps none it returns the error's own
// text, without the operation and the path of an *fs.PathError.
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

// Number returns the text that strerror(3) has for the error number.
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
