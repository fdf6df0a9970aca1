package loginnode

import (
	"net"
	"time"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/metrics"
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
	c.libraryContext = ctx
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
		Config:                  ssh.Config{KeyExchanges: keyExchanges, Ciphers: c.offeredCiphers(), MACs: macs},
		PublicKeyAuthAlgorithms: userKeys,
		MaxAuthTries:            s.cfg.MaxAuthTries,
		NoClientAuthCallback: func(ssh.ConnMetadata) (*ssh.Permissions, error) {
			return nil, ssh.ErrNoAuth
		},
		PublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return s.authPublicKey(c, m, key)
		},
		AuthLogCallback: func(m ssh.ConnMetadata, method string, err error) { s.logAttempt(c, m, method, err) },
	}
	if s.cfg.Banner != "" {
		cfg.BannerCallback = func(ssh.ConnMetadata) string { return s.cfg.Banner }
	}
	if s.cfg.DeviceLogin != nil {
		cfg.KeyboardInteractiveCallback = func(m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			return s.authDevice(c, m, ask)
		}
	}
	return cfg
}

// publicKey answers an offered key. The time of a refusal does not tell whether
// the user exists.
func (s *Server) authPublicKey(c *conn, m ssh.ConnMetadata, key ssh.PublicKey) (p *ssh.Permissions, err error) {
	began := time.Now()
	defer func() {
		if r := recover(); r != nil {
			s.reportEarlyPanic(c, r)
			p, err = nil, auth.ErrDenied
		}
		took := time.Since(began)
		if delay := s.refusals.add(took); err != nil {
			time.Sleep(delay - took)
		}
	}()
	if s.gateway != nil {
		return s.gatewayKey(m, key)
	}
	a, err := auth.NewAttempt(m, key, s.cfg.Now())
	if err != nil {
		return nil, auth.ErrDenied
	}
	if p, err = s.cfg.Auth.PublicKey(c.ctx, a); err != nil {
		return nil, err
	}
	return s.authorizeNode(c, p)
}

// device lets a user log in elsewhere and waits for it.
func (s *Server) authDevice(c *conn, m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (p *ssh.Permissions, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.reportEarlyPanic(c, r)
			p, err = nil, auth.ErrDenied
		}
	}()
	u, err := s.cfg.Auth.Find(c.ctx, m.User())
	if err != nil {
		// The same dialogue as for others, which nobody can bring to an end.
		u = &auth.User{Name: ""}
	}
	c.extendGrace()
	tell := func(text string) error {
		_, err := ask("", text, nil, nil)
		return err
	}
	if err := s.cfg.DeviceLogin(c.ctx, u, tell); err != nil || u.Name == "" {
		s.cfg.Log.Info("device login refused", "user", audit.Truncate(m.User()), "error", err)
		return nil, auth.ErrDenied
	}
	return s.authorizeNode(c, auth.Proven(u, "keyboard-interactive"))
}

// attempted is told the result of each attempt.
func (s *Server) logAttempt(c *conn, m ssh.ConnMetadata, method string, err error) {
	if method == "none" && err != nil {
		return // how every client asks which methods there are
	}
	c.attemptedAuth.Store(true)
	if err != nil {
		s.metrics.Add(metrics.Label("berth_login_logins_total", "result", "refused"), 1)
		r := c.record("login-failed")
		r.User, r.Method, r.Client, r.Reason = m.User(), method, string(m.ClientVersion()), err.Error()
		s.audit.Write(r)
		return
	}
	s.metrics.Add(metrics.Label("berth_login_logins_total", "result", "ok"), 1)
	c.finishAuth()
	if err := c.limitLoginRate(m.User()); err != nil {
		return
	}
	// A client that opens nothing would otherwise never be bound to its identity.
	time.AfterFunc(time.Second, func() {
		defer s.recoverPanic()
		if sc := c.handshaken(); sc != nil {
			c.bindIdentity(sc)
		}
	})
}
