package loginnode

import (
	"net/netip"
	"slices"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/proxyproto"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Every connection, channel and request passes a chain of handlers. Each handler
// either ends it or calls the next one. This file has the chains.

// A connHandler serves a connection until it ends.
type connHandler func(*conn)

// clientHandler returns the handler of a client's connection.
func (s *Server) clientHandler() connHandler {
	return s.readClientAddress(s.limitStartups(s.recoverBeforeLogin(preferFastCiphers(s.serveSSH))))
}

// nodeHandler returns the handler of a connection to a compute node, which a
// connection of a logged-in client carries.
func (s *Server) nodeHandler() connHandler { return countCarried(preferFastCiphers(s.serveSSH)) }

// readClientAddress sets the client's address from the PROXY header if the
// connection comes from a load balancer.
func (s *Server) readClientAddress(next connHandler) connHandler {
	return func(c *conn) {
		from := c.from.Addr()
		if slices.ContainsFunc(s.cfg.ProxyFrom, func(p netip.Prefix) bool { return p.Contains(from) }) {
			addr, err := proxyproto.Read(c.Conn)
			if err != nil {
				s.rejectConnection(c, "no PROXY header from a proxy")
				return
			}
			if addr.IsValid() {
				c.from = addr
			}
		}
		next(c)
	}
}

// limitStartups bounds the connections that have not logged in, and rejects those
// from penalized addresses.
func (s *Server) limitStartups(next connHandler) connHandler {
	return func(c *conn) {
		pending, reason := s.limiter.Admit(c.from.Addr(), func(reason string) { go s.rejectConnection(c, reason) })
		if reason != "" {
			s.rejectConnection(c, reason)
			return
		}
		c.pending = pending
		defer c.end()
		next(c)
	}
}

// recoverBeforeLogin recovers panics that a client may have caused before it logged in.
// Its address is penalized when the connection ends.
func (s *Server) recoverBeforeLogin(next connHandler) connHandler {
	return func(c *conn) {
		defer func() {
			if r := recover(); r != nil {
				s.reportEarlyPanic(c, r)
			}
		}()
		next(c)
	}
}

// countCarried counts the connection with the one that carries it.
func countCarried(next connHandler) connHandler {
	return func(c *conn) {
		c.outer.carried.Add(1)
		defer c.outer.carried.Add(-1)
		defer c.end()
		next(c)
	}
}

// preferFastCiphers reads the client's first message before the handshake and
// chooses the ciphers to offer.
func preferFastCiphers(next connHandler) connHandler {
	return func(c *conn) {
		c.peekKexInit()
		next(c)
	}
}

// serveSSH runs the handshake (see serverConfig) and the loop over channels and
// requests.
func (s *Server) serveSSH(c *conn) { s.glider.HandleConn(c) }

// A channelHandler serves a channel of a logged-in client until it ends.
type channelHandler func(*conn, ssh.NewChannel)

// channelHandlers returns the handlers of channels by type.
func (s *Server) channelHandlers() map[string]glider.ChannelHandler {
	return map[string]glider.ChannelHandler{
		"session": s.authenticated(
			limitSessions(limitUserChannels(limitSessionRate(serveSession))),
		),
		"direct-tcpip":                   s.authenticated((*conn).directTCP),
		"direct-streamlocal@openssh.com": s.authenticated((*conn).directUnix),
	}
}

// authenticated recovers panics, and rejects channels on connections without an
// identity, or in a user's pod without an admission.
func (s *Server) authenticated(next channelHandler) glider.ChannelHandler {
	return func(_ *glider.Server, sc *ssh.ServerConn, nc ssh.NewChannel, ctx glider.Context) {
		defer func() {
			if r := recover(); r != nil {
				s.reportPanic(r)                                           // before the client knows
				_ = nc.Reject(ssh.ConnectionFailed, "it cannot be served") // fails if it is accepted
			}
		}()
		if c := connOf(ctx); c != nil && c.bindIdentity(sc) && c.isAdmitted() {
			next(c, nc)
			return
		}
		_ = nc.Reject(ssh.Prohibited, "not logged in")
	}
}

// limitSessions bounds the sessions of a connection.
func limitSessions(next channelHandler) channelHandler {
	return func(c *conn, nc ssh.NewChannel) {
		// Package ssh delivers channels and requests separately: a session that was
		// opened right before no-more-sessions may arrive after it.
		mayOpen := !c.hadSession.Swap(true) || !c.noMoreSessions.Load()
		if !mayOpen || c.sessions.Add(1) > int32(c.server.cfg.MaxSessions) {
			if mayOpen {
				c.sessions.Add(-1)
			}
			// OpenSSH's client then opens a connection of its own.
			_ = nc.Reject(ssh.Prohibited, "too many sessions on this connection")
			return
		}
		defer c.sessions.Add(-1)
		next(c, nc)
	}
}

// limitUserChannels bounds the sessions and forwarded connections of a user.
func limitUserChannels(next channelHandler) channelHandler {
	return func(c *conn, nc ssh.NewChannel) {
		quota := c.channels()
		if !quota.Enter() {
			_ = nc.Reject(ssh.ResourceShortage, "you have too many sessions and forwarded connections")
			return
		}
		defer quota.Leave()
		next(c, nc)
	}
}

// limitSessionRate delays sessions of a user who starts too many at a time. In a
// user's pod, the login node has done so.
func limitSessionRate(next channelHandler) channelHandler {
	return func(c *conn, nc ssh.NewChannel) {
		if c.server.gateway == nil {
			if err := c.server.sessionRates.Wait(c.ctx, c.login.User.Name); err != nil {
				_ = nc.Reject(ssh.ResourceShortage, "you start too many sessions at a time")
				return
			}
		}
		next(c, nc)
	}
}

// serveSession runs a session: in the user's pod if users have pods, else here.
func serveSession(c *conn, nc ssh.NewChannel) {
	if c.link != nil {
		c.relaySession(nc)
		return
	}
	session.Serve(&c.server.session, c.sessionConn(), nc)
}

// A requestHandler answers a global request of a logged-in client.
type requestHandler func(*conn, *ssh.Request) (ok bool, payload []byte)

// requestHandlers returns the handlers of global requests by type.
func (s *Server) requestHandlers() map[string]glider.RequestHandler {
	handlers := map[string]glider.RequestHandler{
		"keepalive@openssh.com":                  s.authenticatedRequest(answerKeepAlive),
		"no-more-sessions@openssh.com":           s.authenticatedRequest(noMoreSessions),
		"tcpip-forward":                          s.authenticatedRequest((*conn).forwardRequest),
		"cancel-tcpip-forward":                   s.authenticatedRequest((*conn).forwardRequest),
		"streamlocal-forward@openssh.com":        s.authenticatedRequest((*conn).forwardRequest),
		"cancel-streamlocal-forward@openssh.com": s.authenticatedRequest((*conn).forwardRequest),
		requestProve:                             s.authenticatedRequest(s.proveHostKeys),
	}
	if s.gateway != nil {
		for _, name := range []string{requestAdmit, requestCredential, requestRetire} {
			handlers[name] = s.authenticatedRequest(s.gatewayRequest)
		}
	}
	return handlers
}

// authenticatedRequest recovers panics, and refuses requests on connections without
// an identity.
func (s *Server) authenticatedRequest(next requestHandler) glider.RequestHandler {
	return func(ctx glider.Context, _ *glider.Server, r *ssh.Request) (ok bool, payload []byte) {
		defer func() {
			if p := recover(); p != nil {
				s.reportPanic(p)
				ok, payload = false, nil
			}
		}()
		sc, known := ctx.Value(glider.ContextKeyConn).(*ssh.ServerConn)
		if c := connOf(ctx); known && c != nil && c.bindIdentity(sc) {
			return next(c, r)
		}
		return false, nil
	}
}

func answerKeepAlive(*conn, *ssh.Request) (bool, []byte) { return true, nil }

func noMoreSessions(c *conn, _ *ssh.Request) (bool, []byte) {
	c.noMoreSessions.Store(true)
	return true, nil
}
