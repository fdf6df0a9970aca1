package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// Bounds of one connection.
const (
	maxListeners = 64
	maxFlows     = 1024
	dialTimeout  = 30 * time.Second
)

// Forwarder holds the forwardings of one connection. It is safe for
// concurrent use.
type Forwarder struct {
	Policy *Policy
	Login  *auth.Login
	SSH    ssh.Conn
	// Context ends with the connection.
	Context context.Context
	// Report is told each forwarding that was asked for, and why it was refused
	// (nil: it was not); nil: nobody is.
	Report func(kind, target string, err error)
	// Panicked is told that one forwarding was lost to a defect; nil: nobody.
	Panicked func(any)
	// Bytes counts what was carried; it must not be nil.
	Bytes *Bytes

	mu        sync.Mutex
	closed    bool
	listeners map[string]net.Listener
	flows     int
}

// Close ends every listener of the connection.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for name, l := range f.listeners {
		l.Close()
		delete(f.listeners, name)
	}
}

func (f *Forwarder) report(kind, target string, err error) {
	if f.Report != nil {
		f.Report(kind, target, err)
	}
}

func (f *Forwarder) contain() {
	if r := recover(); r != nil && f.Panicked != nil {
		f.Panicked(r)
	}
}

// enter counts a flow in; it tells whether there is room.
func (f *Forwarder) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flows >= maxFlows {
		return false
	}
	f.flows++
	return true
}

func (f *Forwarder) leave() {
	f.mu.Lock()
	f.flows--
	f.mu.Unlock()
}

// allowed is what key and policy say about forwarding at all.
func (f *Forwarder) allowed() error {
	if f.Policy.Off || f.Login.Options.NoPortForwarding {
		return ErrForbidden
	}
	return nil
}

// directTCP is the payload of a direct-tcpip and a forwarded-tcpip channel.
type directTCP struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

// DirectTCP serves a direct-tcpip channel: -L, -D, -W.
func (f *Forwarder) DirectTCP(nc ssh.NewChannel) {
	defer f.contain()
	var m directTCP
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	target := net.JoinHostPort(m.Host, strconv.FormatUint(uint64(m.Port), 10))
	f.open(nc, "direct-tcpip", target, func(ctx context.Context) (halfCloser, error) {
		if !permitted(f.Login.Options.PermitOpen, m.Host, m.Port) {
			return nil, ErrForbidden
		}
		a, err := f.Policy.Destination(ctx, m.Host, m.Port)
		if err != nil {
			return nil, err
		}
		return dialTCP(ctx, a)
	})
}

func dialTCP(ctx context.Context, a netip.AddrPort) (halfCloser, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// directUnix is the payload of direct-streamlocal@openssh.com.
type directUnix struct {
	Path     string
	Reserved string
	Unused   uint32
}

// DirectUnix serves a direct-streamlocal@openssh.com channel: -L to a socket.
func (f *Forwarder) DirectUnix(nc ssh.NewChannel) {
	defer f.contain()
	var m directUnix
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil || !validPath(m.Path) {
		_ = nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	f.open(nc, "direct-streamlocal", m.Path, func(context.Context) (halfCloser, error) {
		// A key that is bound to destinations is bound to TCP ones.
		if f.Login.Options.PermitOpen != nil {
			return nil, ErrForbidden
		}
		return dialUnix(f.Login.User.Rights(), m.Path)
	})
}

// validPath refuses relative paths and the abstract sockets, which have no
// modes.
func validPath(p string) bool {
	return filepath.IsAbs(p) && len(p) < 108 && p == filepath.Clean(p) && p[0] == '/'
}

// dialUnix connects as the user; so the kernel checks modes, and the peer sees
// the user's credentials.
func dialUnix(u asuser.User, path string) (c halfCloser, err error) {
	err = asuser.Do(u, func() error {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			c = conn
		}
		return err
	})
	return c, err
}

// open opens the far end, accepts the channel, and connects them.
func (f *Forwarder) open(nc ssh.NewChannel, kind, target string, dial func(context.Context) (halfCloser, error)) {
	err := f.allowed()
	if err == nil && !f.enter() {
		_ = nc.Reject(ssh.ResourceShortage, "too many forwarded connections")
		return
	}
	var conn halfCloser
	if err == nil {
		defer f.leave()
		ctx, cancel := context.WithTimeout(f.Context, dialTimeout)
		conn, err = dial(ctx)
		cancel()
	}
	f.report(kind, target, err)
	if err != nil {
		reason := ssh.ConnectionFailed
		if errors.Is(err, ErrForbidden) {
			reason = ssh.Prohibited
		}
		_ = nc.Reject(reason, plain(err))
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		conn.Close()
		return
	}
	discard(requests)
	splice(ch, conn, f.Bytes)
}

// plain is an error without what the client need not know.
func plain(err error) string {
	if errors.Is(err, ErrForbidden) {
		return "forbidden by policy"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			return sys.Err.Error()
		}
	}
	return "cannot connect"
}

// tcpForward is the payload of tcpip-forward and cancel-tcpip-forward.
type tcpForward struct {
	Host string
	Port uint32
}

// Listen serves a tcpip-forward request: -R on this machine's loopback,
// whatever address the client names.
func (f *Forwarder) Listen(payload []byte) (bool, []byte) {
	var m tcpForward
	if ssh.Unmarshal(payload, &m) != nil {
		return false, nil
	}
	l, err := f.listenTCP(m)
	f.report("tcpip-forward", net.JoinHostPort(m.Host, strconv.FormatUint(uint64(m.Port), 10)), err)
	if err != nil {
		return false, nil
	}
	port := uint32(l.Addr().(*net.TCPAddr).Port)
	go f.accept(l, "forwarded-tcpip", func(c net.Conn) []byte {
		d := directTCP{Host: m.Host, Port: port}
		if from, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			d.OriginHost, d.OriginPort = from.IP.String(), uint32(from.Port)
		}
		return ssh.Marshal(d)
	})
	if m.Port == 0 {
		return true, ssh.Marshal(struct{ Port uint32 }{port})
	}
	return true, nil
}

func (f *Forwarder) listenTCP(m tcpForward) (net.Listener, error) {
	if err := f.allowed(); err != nil {
		return nil, err
	}
	if m.Port > 65535 || m.Port != 0 && m.Port < 1024 || !permitted(f.Login.Options.PermitListen, m.Host, m.Port) {
		return nil, ErrForbidden
	}
	host := "127.0.0.1"
	if m.Host == "::1" {
		host = m.Host
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(m.Port))))
	if err != nil {
		return nil, err
	}
	return l, f.keep(tcpName(m.Host, uint32(l.Addr().(*net.TCPAddr).Port)), l)
}

func tcpName(host string, port uint32) string { return fmt.Sprintf("tcp %s %d", host, port) }

// keep notes a listener as this connection's.
func (f *Forwarder) keep(name string, l net.Listener) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.listeners[name]; taken || f.closed || len(f.listeners) >= maxListeners {
		l.Close()
		return errors.New("too many forwardings, or this one is there already")
	}
	if f.listeners == nil {
		f.listeners = map[string]net.Listener{}
	}
	f.listeners[name] = l
	return nil
}

// Cancel serves cancel-tcpip-forward. It finds the connection's own only.
func (f *Forwarder) Cancel(payload []byte) bool {
	var m tcpForward
	return ssh.Unmarshal(payload, &m) == nil && f.drop(tcpName(m.Host, m.Port))
}

func (f *Forwarder) drop(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.listeners[name]
	if ok {
		l.Close()
		delete(f.listeners, name)
	}
	return ok
}

// ListenUnix serves streamlocal-forward@openssh.com: -R of a socket, made by
// the user, mode 600.
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
	f.report("streamlocal-forward", m.Path, err)
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

// listenUnix makes a socket as the user, for the user alone from the start
// (package asuser sees to the umask). bind(2) follows no link at the last place and never
// takes a name that exists.
func listenUnix(u asuser.User, path string) (net.Listener, error) {
	var l *net.UnixListener
	err := asuser.Do(u, func() (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return os.Chmod(path, 0o600) // it was 700, for the owner alone
	})
	if err != nil {
		return nil, err
	}
	return &userSocket{l, u, path}, nil
}

// accept opens a channel to the client for each connection.
func (f *Forwarder) accept(l net.Listener, kind string, header func(net.Conn) []byte) {
	defer f.contain()
	for {
		c, err := l.Accept()
		if err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				continue
			}
			return
		}
		if !f.enter() {
			c.Close()
			continue
		}
		go f.deliver(c, kind, header)
	}
}

func (f *Forwarder) deliver(c net.Conn, kind string, header func(net.Conn) []byte) {
	defer f.contain()
	defer f.leave()
	defer c.Close()
	ch, requests, err := f.SSH.OpenChannel(kind, header(c))
	if err != nil {
		return
	}
	discard(requests)
	splice(ch, c.(halfCloser), f.Bytes)
}

// Agent makes a socket in a folder of the user's, behind which the client's
// agent answers. done removes it.
func (f *Forwarder) Agent(folder string) (socket string, done func(), err error) {
	socket = filepath.Join(folder, "agent.sock")
	l, err := listenUnix(f.Login.User.Rights(), socket)
	if err != nil {
		return "", nil, err
	}
	go f.accept(l, "auth-agent@openssh.com", func(net.Conn) []byte { return nil })
	return socket, func() { l.Close() }, nil
}
