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
	ciphers      = []string{
		ssh.CipherChaCha20Poly1305,
		ssh.CipherAES128GCM,
		ssh.CipherAES256GCM,
		ssh.CipherAES256CTR,
		ssh.CipherAES192CTR,
		ssh.CipherAES128CTR,
	}
	macs     = []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM}
	userKeys = []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
		ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
	}
)

// connKey is the key of our conn in the library's context.
type connKey struct{}

// adopt is the library's ConnCallback. Every connection is a conn (see run).
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

// serverConfig returns the configuration of the handshake and the authentication. The
// library sets NoClientAuth because none of its own handlers is set; the callback
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
	if s.cfg.Password != nil && s.gateway == nil {
		cfg.KeyboardInteractiveCallback = func(m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (
			*ssh.Permissions, error) {
			return s.authPassword(c, m, ask)
		}
	}
	if s.cfg.DeviceLogin != nil {
		cfg.KeyboardInteractiveCallback = func(m ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (
			*ssh.Permissions, error) {
			return s.authDevice(c, m, ask)
		}
	}
	return cfg
}

// authPublicKey answers an offered key. The time of a refusal does not reveal whether
// the user exists.
func (s *Server) authPublicKey(c *conn, m ssh.ConnMetadata, key ssh.PublicKey) (p *ssh.Permissions, err error) {
	start := time.Now()
	defer func() {
		if r := recover(); r != nil {
			s.reportEarlyPanic(c, r)
			p, err = nil, auth.ErrDenied
		}
		took := time.Since(start)
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

// authDevice has a user log in with a browser and waits for that.
func (s *Server) authDevice(
	c *conn,
	m ssh.ConnMetadata,
	ask ssh.KeyboardInteractiveChallenge,
) (p *ssh.Permissions, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.reportEarlyPanic(c, r)
			p, err = nil, auth.ErrDenied
		}
	}()
	u, err := s.cfg.Auth.Find(c.ctx, m.User())
	if err != nil {
		// An unknown user sees the same dialog, which can never succeed.
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

// logAttempt records the result of each attempt.
func (s *Server) logAttempt(c *conn, m ssh.ConnMetadata, method string, err error) {
	if method == "none" && err != nil {
		return // every client starts with "none" to get the list of methods
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
	// Otherwise a client that opens nothing would never be bound to its identity.
	time.AfterFunc(time.Second, func() {
		defer s.recoverPanic()
		if sc := c.handshaken(); sc != nil {
			c.bindIdentity(sc)
		}
	})
}
