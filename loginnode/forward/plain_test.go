package forward

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// Clients show refusals in the words of OpenSSH's server.
func TestFailuresHaveTheWordsOfOpenSSH(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "Connection refused", syscall.EHOSTUNREACH: "No route to host", syscall.ETIMEDOUT: "Connection timed out",
	} {
		if got := plain(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}); got != want {
			t.Errorf("%q", got)
		}
	}
}
