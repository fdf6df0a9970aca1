// Package exectest makes the programs that tests run.
package exectest

import (
	"os"
	"syscall"
	"testing"
)

// Write makes an executable file that can be run at once. While a file is being
// written no other goroutine of the process may fork: its child would have the file
// open for writing for a moment, and nobody could execute it then (ETXTBSY, execve(2)).
func Write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // it is a program
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
