// Package eventually waits in tests for conditions that hold after some time.
package eventually

import (
	"testing"
	"time"
)

// Timeout is how long a condition may take. It is far longer than any condition takes on
// a busy machine, so that a test fails only if the condition would never hold.
const Timeout = 4 * time.Minute

// interval is the time between two evaluations of a condition.
const interval = 10 * time.Millisecond

// Holds returns when the condition holds. If it does not hold within Timeout, Holds fails the
// test; what describes the condition in the message.
func Holds(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Timeout); !holds(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Timeout, what)
		}
	}
}

// Succeeds returns when try returns no error. If try still fails after Timeout, Succeeds fails
// the test with the last error; what describes in the message what should succeed.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(Timeout); ; time.Sleep(interval) {
		if err = try(); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s: %v", Timeout, what, err)
		}
	}
}
