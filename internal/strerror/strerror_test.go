package strerror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestText(t *testing.T) {
	_, missing := os.Open("/nonexistent/file")
	for _, c := range []struct {
		err  error
		want string
	}{
		{missing, "No such file or directory"},
		{fmt.Errorf("sending: %w", missing), "No such file or directory"},
		{syscall.EACCES, "Permission denied"},
		{os.NewSyscallError("write", syscall.ENOSPC), "No space left on device"},
		{fs.ErrPermission, "Permission denied"},
		{&fs.PathError{Op: "open", Path: "x", Err: errors.New("file already closed")}, "file already closed"},
		{errors.New("damaged"), "damaged"},
	} {
		if got := Text(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{
		1: "Operation not permitted", 2: "No such file or directory", 4095: "Unknown error 4095", 41: "Unknown error 41",
		-1: "Unknown error -1",
	} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
