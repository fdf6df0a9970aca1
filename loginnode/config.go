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

// Config is a login node's configuration. Zero values mean what their comments
// say; Auth and HostKeys are required.
type Config struct {
	Auth     *auth.Config
	HostKeys []ssh.Signer
	// NextHostKeys are announced to clients, who believe them later, and not
	// used yet; nil: none.
	NextHostKeys []ssh.Signer
	Session      session.Config // Events and Agent are set by the server
	Policy       forward.Policy

	// Banner is shown before the login; "": none.
	Banner string
	// LoginGrace is how long a client may take to log in; 0: 60 s.
	LoginGrace time.Duration
	// MaxAuthTries: 0 means 6.
	MaxAuthTries int
	// FailureDelay is the least time that a refused key takes to be answered,
	// so that the time does not tell whether the user exists; 0: 20 ms.
	FailureDelay time.Duration
	Startups     limit.Startups
	Penalties    limit.Penalties
	// SharedSources are addresses behind which there are many clients, such as
	// the nodes' own where a Service hides the clients': they are not penalised
	// and have no Startups.PerSource.
	SharedSources []netip.Prefix
	// MaxSessions of one connection; 0: 64.
	MaxSessions int
	// MaxUserConnections and MaxUserChannels bound what one user has at a time,
	// sessions and forwarded connections together; 0: 256 and 512.
	MaxUserConnections int
	MaxUserChannels    int
	// LoginRate and SessionRate bound how fast one user logs in and starts
	// sessions; 0: 20 a second after 100 at once, 50 after 200. Who is too fast
	// waits, for 10 s at the most.
	LoginRate, SessionRate limit.Rate
	// KeepAlive is how often a silent client is asked whether it is there, and
	// KeepAliveMax how many answers may be missing. 0: 30 s and 4.
	KeepAlive    time.Duration
	KeepAliveMax int

	// ProxyFrom are the addresses of load balancers that send a PROXY header;
	// nobody else's is believed, and theirs must come.
	ProxyFrom []netip.Prefix

	// RunDir is a folder for sessions' sockets and credentials, on tmpfs, that
	// the server makes; "": /run/berth-login.
	RunDir string
	// Identity makes a user's credential for the cluster; nil: none. It is
	// called again at Renew. With an error it may still return a Credential,
	// whose Env sessions then get while it is tried again.
	Identity func(ctx context.Context, u *auth.User) (*Credential, error)
	// Nodes lets users reach the nodes of their jobs; nil: no.
	Nodes *Nodes
	// Pods gives each user a pod; nil: sessions are this server's own children.
	Pods *Pods
	// Gateway makes this the server of a user's pod; nil: it is not.
	Gateway *Gateway
	// DeviceLogin asks the user to log in elsewhere, by keyboard-interactive;
	// nil: public keys only. tell shows a text, and finds out with an empty one
	// whether the client is there. It returns an error unless the login is proven
	// to be that user's. DeviceGrace is how long it may take; 0: 5 min.
	DeviceLogin func(ctx context.Context, u *auth.User, tell func(text string) error) error
	DeviceGrace time.Duration

	// Log is for the administrator; nil: none. Audit gets one JSON object a
	// line; nil: none.
	Log   *slog.Logger
	Audit io.Writer
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Credential is what a user's processes show to the cluster.
type Credential struct {
	// Files go into a folder of the user's, mode 600. In them and in Env, the
	// text %d stands for the folder.
	Files map[string]string
	Env   []string
	// Renew is when to ask for a new one; zero: never.
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
		return errors.New("nothing says who may log in; refusing to start")
	}
	if err := c.Auth.Check(); err != nil {
		return fmt.Errorf("authentication: %w", err)
	}
	if len(c.HostKeys) == 0 {
		return errors.New("no host key; clients would meet another server after each start")
	}
	if len(c.Session.Child) == 0 {
		return errors.New("no program for sessions")
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
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
