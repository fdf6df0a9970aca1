package forward

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

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
	// Report receives each requested forwarding, and why it was refused (nil: it was
	// not); may be nil.
	Report func(kind, target string, err error)
	// Reach connects to destinations that are not hosts of the network; nil: there are
	// none. It returns a stream, or the host to dial instead (which the policy has to
	// allow), or an error; for ordinary destinations it returns none of the three.
	Reach func(ctx context.Context, host string, port uint32) (Stream, string, error)
	// Room is the quota of the user over all connections; nil: only this connection is
	// bounded.
	Room Room
	// Panicked receives a recovered panic, which ended one forwarding; may be nil.
	Panicked func(any)
	// Bytes counts the copied bytes; it must not be nil.
	Bytes *Bytes

	mu        sync.Mutex
	closed    bool
	listeners map[string]net.Listener
	flows     int
}

// Room is a quota that several Forwarders share.
type Room interface {
	Enter() bool // reserves a place; false: there is none
	Leave()
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

// reportKept is report for a listener that is registered under a name. If it panics, the
// listener is closed, because the client does not know about it.
func (f *Forwarder) reportKept(name, kind, target string, err error) {
	told := err != nil
	defer func() {
		if !told {
			f.drop(name)
		}
	}()
	f.report(kind, target, err)
	told = true
}

func (f *Forwarder) contain() {
	if r := recover(); r != nil && f.Panicked != nil {
		f.Panicked(r)
	}
}

// containOpening is contain for a channel that is not accepted yet.
func (f *Forwarder) containOpening(nc ssh.NewChannel) {
	if r := recover(); r != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "cannot connect") // fails if it is accepted
		if f.Panicked != nil {
			f.Panicked(r)
		}
	}
}

// enter reserves a place for a stream. It returns false if there is none.
func (f *Forwarder) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flows >= maxFlows || f.Room != nil && !f.Room.Enter() {
		return false
	}
	f.flows++
	return true
}

func (f *Forwarder) leave() {
	f.mu.Lock()
	f.flows--
	f.mu.Unlock()
	if f.Room != nil {
		f.Room.Leave()
	}
}

// allowed reports whether key and policy allow forwarding at all.
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

// Host returns the destination host of a direct-tcpip channel, "" if there is none.
func Host(nc ssh.NewChannel) string {
	var m directTCP
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil {
		return ""
	}
	return m.Host
}

// DirectTCP serves a direct-tcpip channel: ssh -L, -D and -W.
func (f *Forwarder) DirectTCP(nc ssh.NewChannel) {
	defer f.containOpening(nc)
	var m directTCP
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	target := net.JoinHostPort(m.Host, strconv.FormatUint(uint64(m.Port), 10))
	f.open(nc, "direct-tcpip", target, func(ctx context.Context) (Stream, error) {
		if !permitted(f.Login.Options.PermitOpen, m.Host, m.Port) {
			return nil, ErrForbidden
		}
		return f.dial(ctx, m.Host, m.Port)
	})
}

// dial connects to a destination.
func (f *Forwarder) dial(ctx context.Context, host string, port uint32) (Stream, error) {
	if f.Reach != nil {
		stream, other, err := f.Reach(ctx, host, port)
		if stream != nil || err != nil {
			return stream, err
		}
		if other != "" {
			host = other
		}
	}
	a, err := f.Policy.Destination(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return dialTCP(ctx, a)
}

func dialTCP(ctx context.Context, a netip.AddrPort) (Stream, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// open connects to the destination, accepts the channel, and copies between them.
func (f *Forwarder) open(nc ssh.NewChannel, kind, target string, dial func(context.Context) (Stream, error)) {
	err := f.allowed()
	if err == nil && !f.enter() {
		_ = nc.Reject(ssh.ResourceShortage, "too many forwarded connections")
		return
	}
	var conn Stream
	if err == nil {
		defer f.leave()
		ctx, cancel := context.WithTimeout(f.Context, dialTimeout)
		conn, err = dial(ctx)
		cancel()
	}
	if err == nil {
		defer conn.Close()
	}
	f.report(kind, target, err)
	if err != nil {
		reason := ssh.ConnectionFailed
		if errors.Is(err, ErrForbidden) || errors.As(err, new(Refusal)) {
			reason = ssh.Prohibited
		}
		_ = nc.Reject(reason, plain(err))
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	discard(requests)
	f.splice(ch, conn)
}

// Refusal is an error whose text the client may see.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Failure is the reason why a destination cannot be reached, as a text that the client
// may see.
type Failure string

func (f Failure) Error() string { return string(f) }

// plain returns an error without the details that the client must not see.
func plain(err error) string {
	if errors.Is(err, ErrForbidden) {
		return "forbidden by policy"
	}
	var said Refusal
	if errors.As(err, &said) {
		return string(said)
	}
	var failed Failure
	if errors.As(err, &failed) {
		return capital(string(failed))
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			return capital(sys.Err.Error())
		}
	}
	return "cannot connect"
}

// capital capitalizes the system's text, which Go has in lower case.
func capital(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
