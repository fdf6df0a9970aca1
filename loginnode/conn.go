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

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/relay"
	"github.com/berth-hpc/berth/loginnode/session"
)

// conn is a client's connection from accept to end. It is a net.Conn, so that
// the library hands it through; it reports the client's true address where a
// proxy told it.
type conn struct {
	net.Conn
	server *Server
	id     string
	from   netip.AddrPort
	opened time.Time

	tcp  bool   // Conn is the network's
	held []byte // the beginning of a packet (Write)

	// What was sent and read before package ssh came into play (lookAhead), and
	// what the client is offered; nil: everything.
	greeting, ahead []byte
	ciphers         []string

	// outer, of a connection to a compute node, is the one it comes through.
	outer *conn
	node  string
	place *Place // set before the login succeeds
	// link, where users have pods, is the way to the user's; flow what it has
	// carried beside sessions.
	link *podLink
	flow relay.Flow
	// admission, in a pod, is what the gateway says of the client.
	admission atomic.Pointer[Admission]
	// carried counts the connections to nodes through this one.
	carried atomic.Int32

	// grace closes the connection unless somebody logs in in time.
	grace   *time.Timer
	expired atomic.Bool
	longer  sync.Once // extends grace
	tried   atomic.Bool
	proven  atomic.Bool
	crashed atomic.Bool
	// pending is the place among the connections that have not logged in; nil:
	// this one is not among them. Set before the handshake.
	pending *limit.Pending

	// library is the library's view of the connection; set before the handshake.
	library context.Context

	mu     sync.Mutex // of serve and end; what serve sets is not changed later
	failed bool       // the identity is missing
	ended  bool

	ssh      *ssh.ServerConn
	login    *auth.Login
	forward  *forward.Forwarder
	bytes    forward.Bytes
	ctx      context.Context
	cancel   context.CancelFunc
	sessions atomic.Int32
	noMore   atomic.Bool
	asked    atomic.Bool // for a session, ever
}

func newConn(s *Server, c net.Conn) *conn {
	var id [6]byte
	_, _ = rand.Read(id[:])
	k := &conn{Conn: c, server: s, id: hex.EncodeToString(id[:]), from: addrPort(c.RemoteAddr()), opened: s.cfg.Now()}
	_, k.tcp = c.(*net.TCPConn)
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.grace = time.AfterFunc(s.cfg.LoginGrace, func() {
		k.expired.Store(true)
		k.cancel() // of what waits for an identity source
		_ = k.Close()
	})
	return k
}

// extendGrace gives somebody who logs in elsewhere more time, once.
func (c *conn) extendGrace() {
	c.longer.Do(func() {
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

// RemoteAddr is the client's address.
func (c *conn) RemoteAddr() net.Addr {
	if !c.from.IsValid() {
		return c.Conn.RemoteAddr()
	}
	return net.TCPAddrFromAddrPort(c.from)
}

// LocalAddr is where the client has connected to.
func (c *conn) LocalAddr() net.Addr {
	if c.outer != nil {
		return c.outer.LocalAddr()
	}
	return c.Conn.LocalAddr()
}

// authenticated ends the time limit and the place among those who have not
// logged in.
func (c *conn) authenticated() {
	c.proven.Store(true)
	c.grace.Stop()
	if c.pending != nil {
		c.pending.Done(limit.LoggedIn)
	}
}

// outcome returns how a connection ended that may not have logged in.
func (c *conn) outcome() limit.Outcome {
	switch {
	case c.proven.Load():
		return limit.LoggedIn
	case c.crashed.Load():
		return limit.Crashed
	case c.expired.Load():
		return limit.GraceExceeded
	case c.tried.Load():
		return limit.AuthFailed
	}
	return limit.NoAttempt
}

// throttle makes a login wait whose user logs in too often, and refuses it if
// that would take too long. It is called once the login is proven, for a stranger
// must not use up a user's rate.
func (c *conn) throttle(user string) error {
	if c.server.gateway != nil {
		return nil // the login node counts
	}
	err := c.server.logins.Wait(c.ctx, user)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	c.failed = true
	c.mu.Unlock()
	c.server.rejectUser(c, user, nil, err)
	return c.Close()
}

// serve binds the connection to its identity, once, at the first sign that
// the handshake is over. It tells whether the connection may be served: it may
// not without an identity.
func (c *conn) serve(sc *ssh.ServerConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed || c.ended || c.login != nil {
		return !c.failed && !c.ended
	}
	login, err := auth.FromPermissions(sc.Permissions)
	if err != nil || login.User.Name != sc.User() {
		c.failed = true
		c.server.cfg.Log.Error("a connection without an identity was closed", "conn", c.id)
		_ = c.Close()
		return false
	}
	// Until all of the following is done: a defect in it must not leave a
	// connection that is served by half.
	c.failed = true
	defer func() {
		if c.failed {
			_ = c.Close()
		}
	}()
	if err := c.server.quotas.AddConnection(login.User.UID, login.User.Name); err != nil {
		c.server.rejectUser(c, login.User.Name, &login.User.UID, err)
		return false
	}
	c.ssh, c.login = sc, login
	c.forward = &forward.Forwarder{
		Policy: &c.server.cfg.Policy, Login: login, SSH: sc, Context: c.ctx, Bytes: &c.bytes,
		Panicked: c.server.panicked, Report: c.forwarded,
		Reach: c.reach, Room: c.channels(),
	}
	c.server.join(c)
	if c.server.keeper != nil {
		c.openLink()
	}
	go c.keepAlive()
	go func() {
		defer c.server.contain()
		c.server.announce(sc)
	}()
	c.failed = false
	return true
}

// channels is the quota of channels of the connection's user.
func (c *conn) channels() limit.Channels { return c.server.quotas.Channels(c.login.User.UID) }

// handshaken is the connection after the handshake; nil: before.
func (c *conn) handshaken() *ssh.ServerConn {
	if c.library == nil {
		return nil
	}
	sc, _ := c.library.Value(glider.ContextKeyConn).(*ssh.ServerConn)
	return sc
}

func (c *conn) forwarded(kind, target string, err error) {
	r := c.record("forward")
	r.Kind, r.Target = kind, target
	result := "ok"
	if err != nil {
		result, r.Reason = "refused", err.Error()
	}
	c.server.metrics.add(label("berth_login_forwards_total", "kind", kind, "result", result), 1)
	c.server.audit.write(r)
}

// record begins an audit record of this connection.
func (c *conn) record(event string) Record {
	r := Record{Event: event, Conn: c.id, Source: c.source().String(), Node: c.node}
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

// keepAlive asks a silent client whether it is there, and closes the
// connection when several answers are missing.
func (c *conn) keepAlive() {
	defer c.server.contain()
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

// session serves a session channel.
func (c *conn) session(nc ssh.NewChannel) {
	// Package ssh hands out channels and requests by different ways: a session
	// that was opened right before the client wants no more may come after it.
	more := !c.asked.Swap(true) || !c.noMore.Load()
	if !more || c.sessions.Add(1) > int32(c.server.cfg.MaxSessions) {
		if more {
			c.sessions.Add(-1)
		}
		// OpenSSH's client then opens a connection of its own.
		_ = nc.Reject(ssh.Prohibited, "too many sessions on this connection")
		return
	}
	defer c.sessions.Add(-1)
	quota := c.channels()
	if !quota.Enter() {
		_ = nc.Reject(ssh.ResourceShortage, "you have too many sessions and forwarded connections")
		return
	}
	defer quota.Leave()
	if c.server.gateway == nil {
		if err := c.server.starts.Wait(c.ctx, c.login.User.Name); err != nil {
			_ = nc.Reject(ssh.ResourceShortage, "you start too many sessions at a time")
			return
		}
	}
	if c.link != nil {
		c.relaySession(nc)
		return
	}
	session.Serve(&c.server.session, c.sessionConn(), nc)
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
		c.serve(sc) // who has asked for nothing has logged in all the same
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if c.login == nil {
		return
	}
	c.forward.Close()
	c.server.part(c)
	c.server.quotas.RemoveConnection(c.login.User.UID)
	r := c.record("logout")
	r.Seconds = c.server.cfg.Now().Sub(c.opened).Seconds()
	r.BytesIn, r.BytesOut = c.bytes.In.Load()+c.flow.In.Load(), c.bytes.Out.Load()+c.flow.Out.Load()
	c.server.audit.write(r)
}
