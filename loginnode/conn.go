package loginnode

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/metrics"
	"github.com/berth-hpc/berth/loginnode/relay"
	"github.com/berth-hpc/berth/loginnode/session"
)

// conn is a client's connection. It is a net.Conn, which the library passes through;
// its RemoteAddr is the client's address also behind a proxy.
type conn struct {
	net.Conn
	server *Server
	id     string
	from   netip.AddrPort
	opened time.Time

	tcp        bool   // Conn is a TCP connection
	heldPacket []byte // the beginning of a packet (Write)

	// What was sent and read before the handshake of package ssh (peekKexInit), and the
	// ciphers to offer; nil: all.
	versionLine, peeked []byte
	ciphers             []string

	// outer is the connection that carries one to a compute node; else nil.
	outer *conn
	node  string
	place *Place // set before the login succeeds
	// link is the connection to the user's pod, if users have pods; flow counts what it
	// has carried beside sessions.
	link *podLink
	flow relay.Flow
	// admission, in a pod, describes the client, as the gateway reports it.
	admission atomic.Pointer[Admission]
	// carried counts the connections to nodes through this one.
	carried atomic.Int32

	// grace closes the connection unless the client logs in in time.
	grace         *time.Timer
	graceExceeded atomic.Bool
	graceExtended sync.Once // extends grace
	attemptedAuth atomic.Bool
	authenticated atomic.Bool
	panicked      atomic.Bool
	// pending counts this connection among those that have not logged in; nil: it is
	// not counted. Set before the handshake.
	pending *limit.Pending

	// libraryContext is the library's context of the connection; set before the
	// handshake.
	libraryContext context.Context

	mu       sync.Mutex // of serve and end; what serve sets is not changed later
	rejected bool       // the identity is missing
	ended    bool

	ssh            *ssh.ServerConn
	login          *auth.Login
	forward        *forward.Forwarder
	bytes          forward.Bytes
	ctx            context.Context
	cancel         context.CancelFunc
	sessions       atomic.Int32
	noMoreSessions atomic.Bool
	hadSession     atomic.Bool // for a session, ever
}

func newConn(s *Server, c net.Conn) *conn {
	var id [6]byte
	_, _ = rand.Read(id[:])
	k := &conn{Conn: c, server: s, id: hex.EncodeToString(id[:]), from: addrPort(c.RemoteAddr()), opened: s.cfg.Now()}
	_, k.tcp = c.(*net.TCPConn)
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.grace = time.AfterFunc(s.cfg.LoginGrace, func() {
		k.graceExceeded.Store(true)
		k.cancel() // of what waits for an identity source
		_ = k.Close()
	})
	return k
}

// extendGrace extends the time limit for a login with a browser, once.
func (c *conn) extendGrace() {
	c.graceExtended.Do(func() {
		if c.grace.Stop() {
			c.grace.Reset(c.server.cfg.DeviceGrace)
		}
	})
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
	}
	return netip.AddrPort{}
}

// RemoteAddr returns the client's address.
func (c *conn) RemoteAddr() net.Addr {
	if !c.from.IsValid() {
		return c.Conn.RemoteAddr()
	}
	return net.TCPAddrFromAddrPort(c.from)
}

// LocalAddr returns the address to which the client connected.
func (c *conn) LocalAddr() net.Addr {
	if c.outer != nil {
		return c.outer.LocalAddr()
	}
	return c.Conn.LocalAddr()
}

// finishAuth ends the time limit of the login and the count among connections that
// have not logged in.
func (c *conn) finishAuth() {
	c.authenticated.Store(true)
	c.grace.Stop()
	if c.pending != nil {
		c.pending.Done(limit.LoggedIn)
	}
}

// outcome returns how a connection ended that may not have logged in.
func (c *conn) outcome() limit.Outcome {
	switch {
	case c.authenticated.Load():
		return limit.LoggedIn
	case c.panicked.Load():
		return limit.Crashed
	case c.graceExceeded.Load():
		return limit.GraceExceeded
	case c.attemptedAuth.Load():
		return limit.AuthFailed
	}
	return limit.NoAttempt
}

// limitLoginRate delays a login of a user who logs in too often, and rejects it if
// the delay would be too long. It is called after the authentication, because a
// stranger must not use up a user's rate.
func (c *conn) limitLoginRate(user string) error {
	if c.server.gateway != nil {
		return nil // the login node counts
	}
	err := c.server.loginRates.Wait(c.ctx, user)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	c.rejected = true
	c.mu.Unlock()
	c.server.rejectQuota(c, user, nil, err)
	return c.Close()
}

// bindIdentity binds the connection to its identity, once, at the first channel or
// request after the handshake. It returns false if the connection has no identity, and
// then nothing may be served on it.
func (c *conn) bindIdentity(sc *ssh.ServerConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rejected || c.ended || c.login != nil {
		return !c.rejected && !c.ended
	}
	login, err := auth.FromPermissions(sc.Permissions)
	if err != nil || login.User.Name != sc.User() {
		c.rejected = true
		c.server.cfg.Log.Error("a connection without an identity was closed", "conn", c.id)
		_ = c.Close()
		return false
	}
	// A panic in the following must not leave a connection that is half set up.
	c.rejected = true
	defer func() {
		if c.rejected {
			_ = c.Close()
		}
	}()
	if err := c.server.quotas.AddConnection(login.User.UID, login.User.Name); err != nil {
		c.server.rejectQuota(c, login.User.Name, &login.User.UID, err)
		return false
	}
	c.ssh, c.login = sc, login
	c.forward = &forward.Forwarder{
		Policy: &c.server.cfg.Policy, Login: login, SSH: sc, Context: c.ctx, Bytes: &c.bytes,
		Panicked: c.server.reportPanic, Report: c.reportForward,
		Reach: c.reach, Room: c.channels(),
	}
	c.server.addConnection(c)
	if c.server.pods != nil {
		c.openLink()
	}
	go c.keepAlive()
	go func() {
		defer c.server.recoverPanic()
		c.server.announceHostKeys(sc)
	}()
	c.rejected = false
	return true
}

// channels returns the quota of channels of the connection's user.
func (c *conn) channels() limit.Channels { return c.server.quotas.Channels(c.login.User.UID) }

// handshaken returns the connection of package ssh, nil before the handshake.
func (c *conn) handshaken() *ssh.ServerConn {
	if c.libraryContext == nil {
		return nil
	}
	sc, _ := c.libraryContext.Value(glider.ContextKeyConn).(*ssh.ServerConn)
	return sc
}

// reportForward records a forwarding.
func (c *conn) reportForward(kind, target string, err error) {
	r := c.record("forward")
	r.Kind, r.Target = kind, target
	result := "ok"
	if err != nil {
		result, r.Reason = "refused", err.Error()
	}
	c.server.metrics.Add(metrics.Label("berth_login_forwards_total", "kind", kind, "result", result), 1)
	c.server.audit.Write(r)
}

// record returns an audit record with the fields of this connection.
func (c *conn) record(event string) audit.Record {
	r := audit.Record{Event: event, Conn: c.id, Source: c.source().String(), Node: c.node}
	if a := c.admission.Load(); a != nil {
		r.Through = a.Conn
	}
	if c.outer != nil {
		r.Through = c.outer.id
	}
	if c.place != nil {
		r.Job = c.place.Job
	}
	if c.login != nil {
		r.User, r.UID = c.login.User.Name, &c.login.User.UID
	}
	return r
}

// keepAlive sends keepalive requests, and closes the connection when several answers
// are missing.
func (c *conn) keepAlive() {
	defer c.server.recoverPanic()
	tick := time.NewTicker(c.server.cfg.KeepAlive)
	defer tick.Stop()
	answered := make(chan bool, 1)
	missing, waiting := 0, false
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-answered:
			missing, waiting = 0, false
		case <-tick.C:
			if waiting {
				if missing++; missing >= c.server.cfg.KeepAliveMax {
					_ = c.Close()
					return
				}
				continue
			}
			waiting = true
			go func() { // returns at the latest when the connection ends
				_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
				if err == nil {
					answered <- true
				}
			}()
		}
	}
}

func (c *conn) sessionConn() *session.Conn {
	return &session.Conn{
		SSH: c.ssh, Login: c.login, From: c.source(), To: c.local(), Context: c.ctx, Owner: c, Inside: c.inside(),
	}
}

// end releases what the connection holds.
func (c *conn) end() {
	c.grace.Stop()
	if c.pending != nil {
		c.pending.Done(c.outcome())
	}
	c.cancel()
	_ = c.Close()
	if sc := c.handshaken(); sc != nil {
		c.bindIdentity(sc) // a client that opened nothing has logged in too
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if c.login == nil {
		return
	}
	c.forward.Close()
	c.server.removeConnection(c)
	c.server.quotas.RemoveConnection(c.login.User.UID)
	r := c.record("logout")
	r.Seconds = c.server.cfg.Now().Sub(c.opened).Seconds()
	r.BytesIn, r.BytesOut = c.bytes.In.Load()+c.flow.In.Load(), c.bytes.Out.Load()+c.flow.Out.Load()
	c.server.audit.Write(r)
}
