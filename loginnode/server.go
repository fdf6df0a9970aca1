package loginnode

import (
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	glider "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/metrics"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Server is a login node. New returns one; its methods are safe for concurrent use.
type Server struct {
	cfg          Config
	session      session.Config
	glider       *glider.Server
	limiter      *limit.Connections
	refusals     refusalDelay
	quotas       *limit.Quotas
	loginRates   *limit.Rates // of a user
	sessionRates *limit.Rates // of a user's sessions

	passwordRates *limit.Rates // of attempts for a user
	metrics       metrics.Metrics
	audit         *audit.Log
	credentials   *credentials
	pods          *podManager   // nil: no pods
	gateway       *gatewayState // nil: not in a pod

	mu             sync.Mutex
	listeners      map[net.Listener]bool
	conns          map[*conn]bool // logged in
	activeSessions map[notifier]time.Time
	wait           sync.WaitGroup // connections of any kind
	open           map[*conn]bool
	draining       atomic.Bool
	closing        chan struct{} // closed when the server closes
	closeOnce      sync.Once
}

// version is the server's software version. OpenSSH's client reports that it reads no
// more output (eow@openssh.com) only to servers whose version starts like this;
// without that, `ssh login cat file | head` would never end.
const version = "OpenSSH.compatible Berth"

// maxRateWait bounds how long a login or session is delayed if its user starts too
// many. One that would have to wait longer is refused.
const maxRateWait = 10 * time.Second

// New checks a configuration and returns a server that does not listen yet. It
// rejects a configuration that would admit everybody or nobody.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		session: cfg.Session,
		limiter: limit.NewConnections(
			cfg.Startups,
			cfg.Penalties,
			slices.Concat(cfg.SharedSources, cfg.ProxyFrom),
			cfg.Now,
		),
		listeners:      map[net.Listener]bool{},
		closing:        make(chan struct{}),
		conns:          map[*conn]bool{},
		open:           map[*conn]bool{},
		activeSessions: map[notifier]time.Time{},
		quotas:         limit.NewQuotas(cfg.MaxUserConnections, cfg.MaxUserChannels),
		refusals:       refusalDelay{least: cfg.FailureDelay, now: cfg.Now},
		loginRates:     limit.NewRates("logins", cfg.LoginRate, maxRateWait, cfg.Now),
		sessionRates:   limit.NewRates("sessions", cfg.SessionRate, maxRateWait, cfg.Now),
	}
	s.passwordRates = limit.NewRates("passwords", cfg.PasswordRate, maxRateWait, cfg.Now)
	s.audit = audit.New(cfg.Audit, cfg.Now, func(err error) { cfg.Log.Error("audit log", "error", err) })
	if err := makeRunDir(cfg.RunDir); err != nil {
		return nil, err
	}
	if cfg.Identity != nil && !inMemory(cfg.RunDir) {
		cfg.Log.Warn("credentials are written to a disk: runDir is not on tmpfs", "runDir", cfg.RunDir)
	}
	s.credentials = &credentials{server: s, users: map[int]*userCredential{}}
	if g := cfg.Gateway; g != nil {
		s.gateway = newGatewayState(cfg.Now())
		if g.Credential {
			s.cfg.Identity = s.pushedCredential
		}
	}
	s.setSessionEvents()
	s.glider = &glider.Server{
		HostSigners:          signers(cfg.HostKeys),
		Version:              version,
		ConnCallback:         adopt,
		ServerConfigCallback: s.serverConfig,
		ChannelHandlers:      s.channelHandlers(),
		RequestHandlers:      s.requestHandlers(),
	}
	if cfg.Pods != nil {
		s.pods = newPodManager(s)
	}
	if cfg.Revoked != nil {
		s.wait.Add(1)
		go s.watchRevoked()
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

// Serve accepts connections on l until Drain or Close, and then returns nil.
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
		default: // most likely there are no free descriptors at the moment
			s.cfg.Log.Warn("accept", "error", err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// accept serves a connection in the background.
func (s *Server) accept(nc net.Conn) {
	s.metrics.Add("berth_login_connections_total", 1)
	s.run(newConn(s, nc), s.clientHandler())
}

// run runs the handler of a connection in the background.
func (s *Server) run(c *conn, handler connHandler) {
	s.mu.Lock()
	s.open[c] = true
	s.mu.Unlock()
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		defer func() {
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
		}()
		defer func() {
			if r := recover(); r != nil {
				s.reportEarlyPanic(c, r)
			}
		}()
		handler(c)
	}()
}

// rejectConnection closes a connection before the handshake.
func (s *Server) rejectConnection(c *conn, why string) {
	c.grace.Stop()
	c.cancel()
	_ = c.Close()
	s.metrics.Add(metrics.Label("berth_login_refused_total", "reason", why), 1)
	s.audit.Write(audit.Record{Event: "refused", Conn: c.id, Source: c.from.String(), Reason: why})
}

// rejectQuota records a login that is over a limit of its user; uid is nil if it is
// unknown.
func (s *Server) rejectQuota(c *conn, name string, uid *int, why error) {
	s.metrics.Add(metrics.Label("berth_login_refused_total", "reason", "user"), 1)
	r := c.record("refused")
	r.User, r.UID, r.Reason = name, uid, why.Error()
	s.audit.Write(r)
	s.cfg.Log.Warn("a login was refused", "user", name, "reason", why.Error())
}

// recoverPanic, deferred, recovers a panic, so that it ends only one goroutine.
func (s *Server) recoverPanic() {
	if r := recover(); r != nil {
		s.reportPanic(r)
	}
}

// reportPanic counts and logs a recovered panic.
func (s *Server) reportPanic(r any) {
	s.metrics.Add("berth_login_panics_total", 1)
	s.cfg.Log.Error("recovered from a panic", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}

// reportEarlyPanic is reportPanic for a panic that a client may have caused before it
// logged in: its address is penalized when the connection ends.
func (s *Server) reportEarlyPanic(c *conn, r any) {
	s.reportPanic(r)
	c.panicked.Store(true)
}

// addConnection registers a connection that has logged in.
func (s *Server) addConnection(c *conn) {
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	s.metrics.Add("berth_login_connections", 1)
	r := c.record("login")
	l := c.login
	r.Method, r.KeyType, r.Fingerprint, r.By = l.Method, l.KeyType, l.Fingerprint, l.Comment
	r.CertID, r.CertSerial, r.Client = l.CertID, l.CertSerial, string(c.ssh.ClientVersion())
	s.audit.Write(r)
	s.cfg.Log.Info(
		"login",
		"conn",
		c.id,
		"user",
		l.User.Name,
		"source",
		c.from.String(),
		"key",
		l.Fingerprint,
		"by",
		l.Comment,
	)
}

// removeConnection removes a connection that had logged in.
func (s *Server) removeConnection(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.metrics.Add("berth_login_connections", -1)
}
