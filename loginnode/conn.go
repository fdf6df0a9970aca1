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

// conn is a client's connection from accept to end. It is a net.Conn, so that
// the library hands it through; it reports the client's true address where a
// proxy told it.
type conn struct {
	net.Conn
	server *Server
	id     string
	from   netip.AddrPort
	opened time.Time

	tcp        bool   // Conn is the network's
	heldPacket []byte // the beginning of a packet (Write)

	// What was sent and read before package ssh came into play (lookAhead), and
	// what the client is offered; nil: everything.
	versionLine, peeked []byte
	ciphers             []string

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
	grace         *time.Timer
	graceExceeded atomic.Bool
	graceExtended sync.Once // extends grace
	attemptedAuth atomic.Bool
	authenticated atomic.Bool
	panicked      atomic.Bool
	// pending is the place among the connections that have not logged in; nil:
	// this one is not among them. Set before the handshake.
	pending *limit.Pending

	// library is the library's view of the connection; set before the handshake.
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

// extendGrace gives somebody who logs in elsewhere more time, once.
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

// throttle makes a login wait whose user logs in too often, and refuses it if
// that would take too long. It is called once the login is proven, for a stranger
// must not use up a user's rate.
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

// serve binds the connection to its identity, once, at the first sign that
// the handshake is over. It tells whether the connection may be served: it may
// not without an identity.
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
	// Until all of the following is done: a defect in it must not leave a
	// connection that is served by half.
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

// channels is the quota of channels of the connection's user.
func (c *conn) channels() limit.Channels { return c.server.quotas.Channels(c.login.User.UID) }

// handshaken is the connection after the handshake; nil: before.
func (c *conn) handshaken() *ssh.ServerConn {
	if c.libraryContext == nil {
		return nil
	}
	sc, _ := c.libraryContext.Value(glider.ContextKeyConn).(*ssh.ServerConn)
	return sc
}

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

// record begins an audit record of this connection.
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

// keepAlive asks a silent client whether it is there, and closes the
// connection when several answers are missing.
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
		c.bindIdentity(sc) // who has asked for nothing has logged in all the same
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
