package forward

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// directUnix is the payload of direct-streamlocal@openssh.com.
type directUnix struct {
	Path     string
	Reserved string
	Unused   uint32
}

// DirectUnix serves a direct-streamlocal@openssh.com channel: -L to a socket.
func (f *Forwarder) DirectUnix(nc ssh.NewChannel) {
	defer f.containOpening(nc)
	var m directUnix
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil || !validPath(m.Path) {
		_ = nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	f.open(nc, "direct-streamlocal", m.Path, func(context.Context) (Stream, error) {
		// permitopen= restricts a key to TCP destinations.
		if f.Login.Options.PermitOpen != nil {
			return nil, ErrForbidden
		}
		return dialUnix(f.Login.User.Rights(), m.Path)
	})
}

// validPath rejects relative paths and abstract sockets, which have no modes.
func validPath(p string) bool {
	return filepath.IsAbs(p) && len(p) < 108 && p == filepath.Clean(p) && p[0] == '/'
}

// dialUnix connects as the user, so that the kernel checks modes and the peer sees the
// user's credentials.
func dialUnix(u asuser.User, path string) (c Stream, err error) {
	err = asuser.Do(u, func() error {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			c = conn
		}
		return err
	})
	return c, err
}

// ListenUnix serves streamlocal-forward@openssh.com: ssh -R for a socket, which is
// created as the user with mode 600.
func (f *Forwarder) ListenUnix(payload []byte) bool {
	var m struct{ Path string }
	if ssh.Unmarshal(payload, &m) != nil || !validPath(m.Path) {
		return false
	}
	err := f.allowed()
	if err == nil && f.Login.Options.PermitListen != nil {
		err = ErrForbidden
	}
	var l net.Listener
	if err == nil {
		if l, err = listenUnix(f.Login.User.Rights(), m.Path); err == nil {
			err = f.keep("unix "+m.Path, l)
		}
	}
	f.reportKept("unix "+m.Path, "streamlocal-forward", m.Path, err)
	if err != nil {
		return false
	}
	go f.accept(l, "forwarded-streamlocal@openssh.com", func(net.Conn) []byte {
		return ssh.Marshal(struct{ Path, Reserved string }{m.Path, ""})
	})
	return true
}

// CancelUnix serves cancel-streamlocal-forward@openssh.com.
func (f *Forwarder) CancelUnix(payload []byte) bool {
	var m struct{ Path string }
	return ssh.Unmarshal(payload, &m) == nil && f.drop("unix "+m.Path)
}

// userSocket is a Unix listener that removes its file as its owner.
type userSocket struct {
	*net.UnixListener
	user asuser.User
	path string
}

// Close also removes the socket.
func (s *userSocket) Close() error {
	err := s.UnixListener.Close()
	_ = asuser.Do(s.user, func() error { return os.Remove(s.path) })
	return err
}

// listenUnix creates a socket as the user, accessible only to the user from the start
// (package asuser sets the umask). bind(2) does not follow a link as the last element
// of the path, and fails if the name exists.
func listenUnix(u asuser.User, path string) (net.Listener, error) {
	var l *net.UnixListener
	err := asuser.Do(u, func() (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return os.Chmod(path, 0o600) // it was 700
	})
	if err != nil {
		return nil, err
	}
	return &userSocket{l, u, path}, nil
}

// Agent creates a socket in a directory of the user that connects to the client's agent.
// done removes it.
func (f *Forwarder) Agent(directory string) (socket string, done func(), err error) {
	socket = filepath.Join(directory, "agent.sock")
	l, err := listenUnix(f.Login.User.Rights(), socket)
	if err != nil {
		return "", nil, err
	}
	go f.accept(l, "auth-agent@openssh.com", func(net.Conn) []byte { return nil })
	return socket, func() { l.Close() }, nil
}
