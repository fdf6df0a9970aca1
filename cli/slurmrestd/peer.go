package slurmrestd

import (
	"context"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// samePeer is the key of a context that has whether the other end of the connection is a
// process of this user.
type samePeer struct{}

// withPeer adds to ctx whether the other end of a connection is a process of this user: only
// such processes may use this process's own credential (rest_auth/local in slurmrestd(8)).
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, samePeer{}, isSameUser(c))
}

// isSameUser reports whether the process that opened the connection runs as this user.
func isSameUser(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Getuid()
	})
	return err == nil && same
}
