package loginnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Server is a login node. Make one with New; its methods are safe for
// concurrent use.
type Server struct {
	cfg      Config
	session  session.Config
	glider   *glider.Server
	early    *limit.Connections
	refusals refusalDelay
	quotas   *limit.Quotas
	logins   *limit.Rates // of a user
	starts   *limit.Rates // of a user's sessions
	metrics  metrics
	audit    audit
	creds    *credentials
	keeper   *keeper       // nil: no pods
	gateway  *gatewayState // nil: not in a pod

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[*conn]bool // logged in
	live      map[sayer]time.Time
	all       sync.WaitGroup // connections of any kind
	raw       map[*conn]bool
	draining  atomic.Bool
}

// version is how the server names itself. OpenSSH's client says that it reads
// no more of a program's output (eow@openssh.com) only to servers whose name
// begins so; without it `ssh login cat file | head` would never end.
const version = "OpenSSH.compatible Berth"

// longestWait is how long a login or session waits whose user begins too many;
// one that had to wait longer is refused.
const longestWait = 10 * time.Second

// New checks a configuration and makes a server of it, which does not listen
// yet. It refuses one that would let in everybody or that could let in nobody.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, session: cfg.Session,
		early:     limit.NewConnections(cfg.Startups, cfg.Penalties, slices.Concat(cfg.SharedSources, cfg.ProxyFrom), cfg.Now),
		listeners: map[net.Listener]bool{}, conns: map[*conn]bool{}, raw: map[*conn]bool{},
		live: map[sayer]time.Time{}, quotas: limit.NewQuotas(cfg.MaxUserConnections, cfg.MaxUserChannels),
		refusals: refusalDelay{least: cfg.FailureDelay, now: cfg.Now},
		logins:   limit.NewRates("logins", cfg.LoginRate, longestWait, cfg.Now),
		starts:   limit.NewRates("sessions", cfg.SessionRate, longestWait, cfg.Now),
	}
	s.audit = audit{to: cfg.Audit, now: cfg.Now, bad: func(err error) { cfg.Log.Error("audit log", "error", err) }}
	if err := makeRunDir(cfg.RunDir); err != nil {
		return nil, err
	}
	if cfg.Identity != nil && !inMemory(cfg.RunDir) {
		cfg.Log.Warn("credentials are written to a disk: runDir is not on tmpfs", "runDir", cfg.RunDir)
	}
	s.creds = &credentials{server: s, users: map[int]*held{}}
	if g := cfg.Gateway; g != nil {
		s.gateway = newGatewayState(cfg.Now())
		if g.Credential {
			s.cfg.Identity = s.pushed
		}
	}
	s.watchSessions()
	s.glider = &glider.Server{
		HostSigners:          signers(cfg.HostKeys),
		Version:              version,
		ConnCallback:         adopt,
		ServerConfigCallback: s.serverConfig,
		ChannelHandlers: map[string]glider.ChannelHandler{
			"session":                        s.channel((*conn).session),
			"direct-tcpip":                   s.channel((*conn).directTCP),
			"direct-streamlocal@openssh.com": s.channel((*conn).directUnix),
		},
		RequestHandlers: s.requests(),
	}
	if cfg.Pods != nil {
		s.keeper = newKeeper(s)
	}
	return s, nil
}

func signers(keys []ssh.Signer) []glider.Signer {
	var out []glider.Signer
	for _, k := range keys {
		out = append(out, k)
	}
	return out
}

// Serve accepts connections on l until Drain or Close. It returns nil then.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return errors.New("the server drains")
	}
	s.listeners[l] = true
	s.mu.Unlock()
	pause := 5 * time.Millisecond
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.accept(c)
		case s.draining.Load() || errors.Is(err, net.ErrClosed):
			return nil
		default: // out of descriptors, most likely; it passes
			s.cfg.Log.Warn("accept", "error", err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// accept admits a connection and serves it.
func (s *Server) accept(nc net.Conn) {
	s.metrics.add("berth_login_connections_total", 1)
	s.run(newConn(s, nc))
}

// run serves a connection in the background.
func (s *Server) run(c *conn) {
	s.mu.Lock()
	s.raw[c] = true
	s.mu.Unlock()
	s.all.Add(1)
	go func() {
		defer s.all.Done()
		defer func() {
			s.mu.Lock()
			delete(s.raw, c)
			s.mu.Unlock()
		}()
		defer func() {
			if r := recover(); r != nil {
				s.panickedBefore(c, r)
			}
		}()
		s.handle(c)
	}()
}

func (s *Server) handle(c *conn) {
	if c.outer != nil { // its client has been admitted
		c.outer.carried.Add(1)
		defer c.outer.carried.Add(-1)
		defer c.end()
		c.lookAhead()
		s.glider.HandleConn(c)
		return
	}
	if err := s.trueAddress(c); err != nil {
		s.refuse(c, "no PROXY header from a proxy")
		return
	}
	pending, why := s.early.Admit(c.from.Addr(), func(why string) { go s.refuse(c, why) })
	if why != "" {
		s.refuse(c, why)
		return
	}
	c.pending = pending
	defer c.end()
	defer func() { // before the end, which penalises what happened
		if r := recover(); r != nil {
			s.panickedBefore(c, r)
		}
	}()
	c.lookAhead()
	s.glider.HandleConn(c)
}

// trueAddress reads the header that a load balancer sends.
func (s *Server) trueAddress(c *conn) error {
	from := c.from.Addr()
	if !slices.ContainsFunc(s.cfg.ProxyFrom, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return nil
	}
	addr, err := readProxy(c.Conn)
	if err == nil && addr.IsValid() {
		c.from = addr
	}
	return err
}

func (s *Server) refuse(c *conn, why string) {
	c.grace.Stop()
	c.cancel()
	_ = c.Close()
	s.metrics.add(label("berth_login_refused_total", "reason", why), 1)
	s.audit.write(Record{Event: "refused", Conn: c.id, Source: c.from.String(), Reason: why})
}

// rejectUser records a connection that is over a limit of its user's; uid is nil
// where it is not known.
func (s *Server) rejectUser(c *conn, name string, uid *int, why error) {
	s.metrics.add(label("berth_login_refused_total", "reason", "user"), 1)
	r := c.record("refused")
	r.User, r.UID, r.Reason = name, uid, why.Error()
	s.audit.write(r)
	s.cfg.Log.Warn("a login was refused", "user", name, "reason", why.Error())
}

// contain keeps a defect to one connection. It is deferred.
func (s *Server) contain() {
	if r := recover(); r != nil {
		s.panicked(r)
	}
}

func (s *Server) panicked(r any) {
	s.metrics.add("berth_login_panics_total", 1)
	s.cfg.Log.Error("a defect was contained", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}

// panickedBefore is panicked, where a client that has not logged in may have
// caused it: its address is penalised when the connection ends.
func (s *Server) panickedBefore(c *conn, r any) {
	s.panicked(r)
	c.crashed.Store(true)
}

// channel wraps a channel's handler: identity first, defects contained.
func (s *Server) channel(f func(*conn, ssh.NewChannel)) glider.ChannelHandler {
	return func(_ *glider.Server, sc *ssh.ServerConn, nc ssh.NewChannel, ctx glider.Context) {
		defer func() {
			if r := recover(); r != nil {
				_ = nc.Reject(ssh.ConnectionFailed, "it cannot be served") // in vain if it is accepted
				s.panicked(r)
			}
		}()
		if c := connOf(ctx); c != nil && c.serve(sc) && c.mayServe() {
			f(c, nc)
			return
		}
		_ = nc.Reject(ssh.Prohibited, "not logged in")
	}
}

// requests are the handlers of a connection's global requests.
func (s *Server) requests() map[string]glider.RequestHandler {
	wrap := func(f func(*conn, *ssh.Request) (bool, []byte)) glider.RequestHandler {
		return func(ctx glider.Context, _ *glider.Server, r *ssh.Request) (ok bool, payload []byte) {
			defer func() {
				if p := recover(); p != nil {
					s.panicked(p)
					ok, payload = false, nil
				}
			}()
			sc, known := ctx.Value(glider.ContextKeyConn).(*ssh.ServerConn)
			if c := connOf(ctx); known && c != nil && c.serve(sc) {
				return f(c, r)
			}
			return false, nil
		}
	}
	all := map[string]glider.RequestHandler{
		"keepalive@openssh.com": wrap(func(*conn, *ssh.Request) (bool, []byte) { return true, nil }),
		"no-more-sessions@openssh.com": wrap(func(c *conn, _ *ssh.Request) (bool, []byte) {
			c.noMore.Store(true)
			return true, nil
		}),
	}
	for _, name := range []string{
		"tcpip-forward", "cancel-tcpip-forward", "streamlocal-forward@openssh.com", "cancel-streamlocal-forward@openssh.com",
	} {
		all[name] = wrap((*conn).forwardRequest)
	}
	all[requestProve] = wrap(s.prove)
	if s.gateway != nil {
		for _, name := range []string{requestAdmit, requestCredential, requestRetire} {
			all[name] = wrap(s.fromGateway)
		}
	}
	return all
}

// join notes a connection that has logged in.
func (s *Server) join(c *conn) {
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	s.metrics.add("berth_login_connections", 1)
	r := c.record("login")
	l := c.login
	r.Method, r.KeyType, r.Fingerprint, r.By = l.Method, l.KeyType, l.Fingerprint, l.Comment
	r.CertID, r.CertSerial, r.Client = l.CertID, l.CertSerial, string(c.ssh.ClientVersion())
	s.audit.write(r)
	s.cfg.Log.Info("login", "conn", c.id, "user", l.User.Name, "source", c.from.String(), "key", l.Fingerprint, "by", l.Comment)
}

func (s *Server) part(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.metrics.add("berth_login_connections", -1)
}
