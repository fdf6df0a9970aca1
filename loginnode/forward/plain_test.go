package forward

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// Clients show what they are told as OpenSSH's server says it.
func TestFailuresAreSaidAsByOthers(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "Connection refused", syscall.EHOSTUNREACH: "No route to host", syscall.ETIMEDOUT: "Connection timed out",
	} {
		if got := plain(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}); got != want {
			t.Errorf("%q", got)
		}
	}
}
