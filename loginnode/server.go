package loginnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Algorithms, in the order of preference: post-quantum first, nothing with
// SHA-1, CBC, a MAC before encryption, or a NIST curve in the key exchange.
var (
	keyExchanges = []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519}
	ciphers      = []string{ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES256CTR, ssh.CipherAES192CTR, ssh.CipherAES128CTR}
	macs         = []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM}
	userKeys     = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
		ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
	}
)

// Server is a login node. Make one with New; its methods are safe for
// concurrent use.
type Server struct {
	cfg     Config
	session session.Config
	glider  *glider.Server
	gate    *gate
	metrics metrics
	audit   audit
	creds   *credentials

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[*conn]bool // logged in
	live      map[*session.Session]time.Time
	all       sync.WaitGroup // connections of any kind
	raw       map[*conn]bool
	draining  atomic.Bool
}

// New checks a configuration and makes a server of it, which does not listen
// yet. It refuses one that would let in everybody or that could let in nobody.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, session: cfg.Session, gate: newGate(cfg.Startups, cfg.Penalties, cfg.Now),
		listeners: map[net.Listener]bool{}, conns: map[*conn]bool{}, raw: map[*conn]bool{},
		live: map[*session.Session]time.Time{},
	}
	s.audit = audit{to: cfg.Audit, now: cfg.Now, bad: func(err error) { cfg.Log.Error("audit log", "error", err) }}
	if err := makeRunDir(cfg.RunDir); err != nil {
		return nil, err
	}
	if cfg.Identity != nil && !inMemory(cfg.RunDir) {
		cfg.Log.Warn("credentials are written to a disk: runDir is not on tmpfs", "runDir", cfg.RunDir)
	}
	s.creds = &credentials{server: s, users: map[int]*held{}}
	s.watchSessions()
	s.glider = &glider.Server{
		HostSigners:          signers(cfg.HostKeys),
		Version:              "Berth",
		ConnCallback:         adopt,
		ServerConfigCallback: s.serverConfig,
		ChannelHandlers: map[string]glider.ChannelHandler{
			"session":                        s.channel((*conn).session),
			"direct-tcpip":                   s.channel(func(c *conn, nc ssh.NewChannel) { c.forward.DirectTCP(nc) }),
			"direct-streamlocal@openssh.com": s.channel(func(c *conn, nc ssh.NewChannel) { c.forward.DirectUnix(nc) }),
		},
		RequestHandlers: s.requests(),
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
	c := newConn(s, nc)
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
		defer s.contain()
		s.handle(c)
	}()
}

func (s *Server) handle(c *conn) {
	if err := s.trueAddress(c); err != nil {
		s.refuse(c, "no PROXY header from a proxy")
		return
	}
	if why := s.gate.enter(c.from.Addr()); why != "" {
		s.refuse(c, why)
		return
	}
	s.metrics.add("berth_login_early_connections", 1)
	defer c.end()
	defer s.judge(c)
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

// judge punishes the address of a connection that never logged in.
func (s *Server) judge(c *conn) {
	p := s.cfg.Penalties
	switch a := c.from.Addr(); {
	case p.Off || c.proven.Load():
	case c.expired.Load():
		s.gate.punish(a, p.Grace)
	case !c.tried.Load():
		s.gate.punish(a, p.NoAuth)
	}
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

// connKey is where the library's context holds our conn.
type connKey struct{}

// adopt is the library's first call for a connection. Every connection comes
// through handle, so it is ours.
func adopt(ctx glider.Context, nc net.Conn) net.Conn {
	c, ok := nc.(*conn)
	if !ok {
		return nil
	}
	ctx.SetValue(connKey{}, c)
	c.library = ctx
	return c
}

func connOf(ctx glider.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// serverConfig decides how a connection may log in. The library switches
// NoClientAuth on because none of its own handlers is set; the callback then
// refuses what that would allow.
func (s *Server) serverConfig(ctx glider.Context) *ssh.ServerConfig {
	c := connOf(ctx)
	cfg := &ssh.ServerConfig{
		Config:                  ssh.Config{KeyExchanges: keyExchanges, Ciphers: ciphers, MACs: macs},
		PublicKeyAuthAlgorithms: userKeys,
		MaxAuthTries:            s.cfg.MaxAuthTries,
		NoClientAuthCallback: func(ssh.ConnMetadata) (*ssh.Permissions, error) {
			return nil, ssh.ErrNoAuth
		},
		PublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return s.publicKey(c, m, key)
		},
		AuthLogCallback: func(m ssh.ConnMetadata, method string, err error) { s.attempted(c, m, method, err) },
	}
	if s.cfg.Banner != "" {
		cfg.BannerCallback = func(ssh.ConnMetadata) string { return s.cfg.Banner }
	}
	if s.cfg.DeviceLogin != nil {
		cfg.KeyboardInteractiveCallback = func(m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			return s.device(c, m, ask)
		}
	}
	return cfg
}

// publicKey answers an offered key. A refusal takes a fixed time at least.
func (s *Server) publicKey(c *conn, m ssh.ConnMetadata, key ssh.PublicKey) (p *ssh.Permissions, err error) {
	began := time.Now()
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r)
			p, err = nil, auth.ErrDenied
		}
		if err != nil {
			time.Sleep(s.cfg.FailureDelay - time.Since(began))
		}
	}()
	a, err := auth.NewAttempt(m, key, s.cfg.Now())
	if err != nil {
		return nil, auth.ErrDenied
	}
	return s.cfg.Auth.PublicKey(c.ctx, a)
}

// device lets a user log in elsewhere and waits for it.
func (s *Server) device(c *conn, m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (p *ssh.Permissions, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r)
			p, err = nil, auth.ErrDenied
		}
	}()
	u, err := s.cfg.Auth.Find(c.ctx, m.User())
	if err != nil {
		// The same dialogue as for others, which nobody can bring to an end.
		u = &auth.User{Name: ""}
	}
	tell := func(text string) error {
		_, err := ask("", text, []string{"Press Enter when you have done so: "}, []bool{true})
		return err
	}
	if err := s.cfg.DeviceLogin(c.ctx, u, tell); err != nil || u.Name == "" {
		s.cfg.Log.Info("device login refused", "user", m.User(), "error", err)
		return nil, auth.ErrDenied
	}
	return auth.Proven(u, "keyboard-interactive"), nil
}

// attempted is told the result of each attempt.
func (s *Server) attempted(c *conn, m ssh.ConnMetadata, method string, err error) {
	if method == "none" && err != nil {
		return // how every client asks which methods there are
	}
	c.tried.Store(true)
	if err != nil {
		s.metrics.add(label("berth_login_logins_total", "result", "refused"), 1)
		if !s.cfg.Penalties.Off {
			s.gate.punish(c.from.Addr(), s.cfg.Penalties.AuthFail)
		}
		s.audit.write(Record{Event: "login-failed", Conn: c.id, User: m.User(), Source: c.from.String(), Method: method,
			Client: string(m.ClientVersion()), Reason: err.Error()})
		return
	}
	s.metrics.add(label("berth_login_logins_total", "result", "ok"), 1)
	c.authenticated()
	// A client that opens nothing would otherwise never be bound to its identity.
	time.AfterFunc(time.Second, func() {
		defer s.contain()
		if sc := c.handshaken(); sc != nil {
			c.serve(sc)
		}
	})
}

// channel wraps a channel's handler: identity first, defects contained.
func (s *Server) channel(f func(*conn, ssh.NewChannel)) glider.ChannelHandler {
	return func(_ *glider.Server, sc *ssh.ServerConn, nc ssh.NewChannel, ctx glider.Context) {
		defer s.contain()
		if c := connOf(ctx); c != nil && c.serve(sc) {
			f(c, nc)
			return
		}
		_ = nc.Reject(ssh.Prohibited, "not logged in")
	}
}

// requests are the handlers of a connection's global requests.
func (s *Server) requests() map[string]glider.RequestHandler {
	wrap := func(f func(*conn, []byte) (bool, []byte)) glider.RequestHandler {
		return func(ctx glider.Context, _ *glider.Server, r *ssh.Request) (ok bool, payload []byte) {
			defer func() {
				if p := recover(); p != nil {
					s.panicked(p)
					ok, payload = false, nil
				}
			}()
			sc, known := ctx.Value(glider.ContextKeyConn).(*ssh.ServerConn)
			if c := connOf(ctx); known && c != nil && c.serve(sc) {
				return f(c, r.Payload)
			}
			return false, nil
		}
	}
	plain := func(ok bool) (bool, []byte) { return ok, nil }
	return map[string]glider.RequestHandler{
		"tcpip-forward":        wrap(func(c *conn, p []byte) (bool, []byte) { return c.forward.Listen(p) }),
		"cancel-tcpip-forward": wrap(func(c *conn, p []byte) (bool, []byte) { return plain(c.forward.Cancel(p)) }),
		"streamlocal-forward@openssh.com": wrap(func(c *conn, p []byte) (bool, []byte) {
			return plain(c.forward.ListenUnix(p))
		}),
		"cancel-streamlocal-forward@openssh.com": wrap(func(c *conn, p []byte) (bool, []byte) {
			return plain(c.forward.CancelUnix(p))
		}),
		"keepalive@openssh.com": wrap(func(*conn, []byte) (bool, []byte) { return true, nil }),
		"no-more-sessions@openssh.com": wrap(func(c *conn, _ []byte) (bool, []byte) {
			c.noMore.Store(true)
			return true, nil
		}),
	}
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

// Ready tells whether the server takes logins.
func (s *Server) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.draining.Load() && len(s.listeners) > 0
}

// Drain takes no more logins, tells every terminal, and waits until the
// sessions have ended or ctx has; then it closes what is left.
func (s *Server) Drain(ctx context.Context, message string) {
	s.draining.Store(true)
	s.metrics.add("berth_login_draining", 1)
	s.audit.write(Record{Event: "drain"})
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	// Who is still logging in is too late; who has no session keeps nobody.
	for c := range s.raw {
		if !s.conns[c] || c.sessions.Load() == 0 {
			_ = c.Close()
		}
	}
	for one := range s.live {
		go one.Say(message)
	}
	s.mu.Unlock()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for s.sessions() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.Close()
}

func (s *Server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// Close ends everything at once and waits until it is over.
func (s *Server) Close() {
	s.draining.Store(true)
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	for c := range s.raw {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
	s.creds.close()
	_ = os.Remove(s.cfg.RunDir) // if nobody's is left in it
}
