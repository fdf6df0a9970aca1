// Package exectest creates programs for tests.
package exectest

import (
	"os"
	"syscall"
	"testing"
)

// Write creates an executable file that can be executed at once. No other goroutine may
// fork while the file is written: the child would have it open for writing for a moment,
// and executing it would fail (ETXTBSY, execve(2)).
func Write(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755) //nolint:gosec // it is a program
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
