package forward

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// shortOfFiles is a listener whose first Accept finds no free file descriptor.
type shortOfFiles struct {
	net.Listener
	accepts int
}

func (l *shortOfFiles) Accept() (net.Conn, error) {
	if l.accepts++; l.accepts == 1 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return nil, net.ErrClosed
}

// A listener survives a lack of file descriptors: it ends only when it is closed.
func TestAcceptSurvivesLackOfDescriptors(t *testing.T) {
	l := &shortOfFiles{}
	(&Forwarder{}).accept(l, "forwarded-tcpip", nil)
	if l.accepts != 2 {
		t.Errorf("%d calls of Accept, want 2", l.accepts)
	}
}
