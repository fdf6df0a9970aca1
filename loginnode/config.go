package loginnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Config is a login node's configuration. Auth and HostKeys are required; the
// comments say what zero values of the other fields mean.
type Config struct {
	Auth     *auth.Config
	HostKeys []ssh.Signer
	// NextHostKeys are announced to clients, which will trust them, but not used yet;
	// nil: none.
	NextHostKeys []ssh.Signer
	Session      session.Config // Events and Agent are set by the server
	Policy       forward.Policy

	// Banner is shown before the login; "": none.
	Banner string
	// LoginGrace bounds the time of a login; 0: 60 s.
	LoginGrace time.Duration
	// MaxAuthTries: 0 means 6.
	MaxAuthTries int
	// FailureDelay is the minimum time until the response to a refused key, so that the
	// time does not reveal whether the user exists; 0: 20 ms.
	FailureDelay time.Duration
	Startups     limit.Startups
	Penalties    limit.Penalties
	// SharedSources are addresses that many clients share, such as those of the nodes
	// if a Service hides the clients' addresses. They are not penalized, and
	// Startups.PerSource does not apply to them.
	SharedSources []netip.Prefix
	// MaxSessions of one connection; 0: 64.
	MaxSessions int
	// MaxUserConnections and MaxUserChannels bound the connections of one user, and
	// the user's sessions and forwarded connections together; 0: 256 and 512.
	MaxUserConnections int
	MaxUserChannels    int
	// LoginRate and SessionRate bound the rates at which one user logs in and starts
	// sessions; 0: 20 per second with bursts of 100, and 50 with bursts of 200. Logins
	// and sessions above them are delayed, for at most 10 s.
	LoginRate, SessionRate limit.Rate
	// KeepAlive is the interval of keepalive requests, and KeepAliveMax how many answers
	// may be missing. 0: 30 s and 4.
	KeepAlive    time.Duration
	KeepAliveMax int

	// ProxyFrom are the addresses of load balancers. Their connections must start with
	// a PROXY header; from other addresses none is accepted.
	ProxyFrom []netip.Prefix

	// RunDir is the directory for the sockets and credentials of sessions. It should be on
	// tmpfs; the server creates it. "": /run/berth-login.
	RunDir string
	// Identity issues a user's credential for the cluster; nil: none. It is called again
	// at Renew. Together with an error it may return a Credential, whose Env sessions
	// get until a retry succeeds.
	Identity func(ctx context.Context, u *auth.User) (*Credential, error)
	// Revoked reports whether a user who has logged in may no longer do so. What the user has
	// here is then ended. It is called every second, so it has to be quick. nil: sessions
	// outlive the right to log in.
	Revoked func(u *auth.User) bool
	// EndProcesses ends the processes of a revoked user that outlive their sessions; nil:
	// they stay.
	EndProcesses func(u *auth.User) error
	// Nodes gives users access to the nodes of their jobs; nil: none.
	Nodes *Nodes
	// Pods runs each user's sessions in a pod; nil: they are children of this process.
	Pods *Pods
	// Gateway makes this the server in a user's pod; nil: it is not.
	Gateway *Gateway
	// DeviceLogin has the user log in with a browser, by keyboard-interactive; nil:
	// only public keys are accepted. tell shows a text; with an empty text it only
	// checks that the client is connected. DeviceLogin returns an error unless that
	// user has logged in. DeviceGrace bounds its time; 0: 5 min.
	DeviceLogin func(ctx context.Context, u *auth.User, tell func(text string) error) error
	DeviceGrace time.Duration

	// Password verifies the answers to Prompts, joined, by keyboard-interactive; nil: no
	// passwords. It returns nil only for the user's own. Prompts nil: "Password: ".
	// PasswordRate bounds the attempts for one user; 0: one in 5 s, with bursts of 5.
	// Attempts above it are delayed, for at most 10 s.
	Password     func(ctx context.Context, user, password string) error
	Prompts      []string
	PasswordRate limit.Rate

	// Log is the administrator's log; nil: none. Audit receives the audit log, one JSON
	// object a line; nil: none.
	Log   *slog.Logger
	Audit io.Writer
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Credential is a user's credential for the cluster.
type Credential struct {
	// Files are written into a directory of the user, with mode 600. In them and in Env,
	// %d stands for the directory.
	Files map[string]string
	Env   []string
	// Renew is when to issue a new one; zero: never.
	Renew time.Time
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// complete checks the configuration and fills in defaults.
func (c *Config) complete() error {
	if c.Auth == nil {
		return errors.New("no source of users is configured, so nobody could log in")
	}
	if err := c.Auth.Check(); err != nil {
		return fmt.Errorf("authentication: %w", err)
	}
	if len(c.HostKeys) == 0 {
		return errors.New("no host key is configured; with a new one after each start clients would refuse to connect")
	}
	if len(c.Session.Child) == 0 {
		return errors.New("no program for sessions is configured")
	}
	c.LoginGrace = or(c.LoginGrace, time.Minute)
	c.DeviceGrace = or(c.DeviceGrace, 5*time.Minute)
	c.MaxAuthTries = or(c.MaxAuthTries, 6)
	c.FailureDelay = or(c.FailureDelay, 20*time.Millisecond)
	c.MaxSessions = or(c.MaxSessions, 64)
	c.MaxUserConnections, c.MaxUserChannels = or(c.MaxUserConnections, 256), or(c.MaxUserChannels, 512)
	c.KeepAlive = or(c.KeepAlive, 30*time.Second)
	c.KeepAliveMax = or(c.KeepAliveMax, 4)
	c.RunDir = or(c.RunDir, "/run/berth-login")
	c.Session.Path = or(c.Session.Path, "/usr/local/bin:/usr/bin:/bin:/usr/games")
	c.Session.Umask = or(c.Session.Umask, 0o022)
	if c.Pods != nil {
		if err := c.Pods.complete(); err != nil {
			return err
		}
		if c.Auth.PermitRoot {
			return errors.New("pods: there is none for root, who must not be permitted to log in")
		}
	}
	c.Startups.Complete()
	c.Penalties.Complete()
	c.LoginRate = limit.Rate{PerSecond: or(c.LoginRate.PerSecond, 20), Burst: or(c.LoginRate.Burst, 100)}
	c.SessionRate = limit.Rate{PerSecond: or(c.SessionRate.PerSecond, 50), Burst: or(c.SessionRate.Burst, 200)}
	c.PasswordRate = limit.Rate{PerSecond: or(c.PasswordRate.PerSecond, 0.2), Burst: or(c.PasswordRate.Burst, 5)}
	if c.Password != nil && c.DeviceLogin != nil {
		return errors.New("passwords and the login at a provider exclude each other: both are keyboard-interactive")
	}
	if len(c.Prompts) == 0 {
		c.Prompts = []string{"Password: "}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
