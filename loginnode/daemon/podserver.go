package daemon

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/limit"
)

// podMain runs the server of a user's pod, and returns its exit code.
func podMain(errs, out io.Writer) int {
	if err := servePod(errs, out); err != nil {
		fmt.Fprintln(errs, "loginnode: error:", err)
		return 1
	}
	return 0
}

func servePod(errs, out io.Writer) error {
	p, err := readPodFile(os.Getenv(EnvPod))
	if err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	cfg.Log, cfg.Audit = slog.New(slog.NewJSONHandler(audit.Printable(errs), nil)), out
	s, err := loginnode.New(cfg)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-s.Retired():
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), podGrace)
		defer cancel()
		s.Drain(end, "*** This login pod ends now. ***")
	}
	s.Close()
	return nil
}

// podGrace is how long sessions may continue after their pod is stopped.
const podGrace = 5 * time.Second

func readPodFile(text string) (*podFile, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvPod, err)
	}
	var p podFile
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", EnvPod, err)
	}
	if p.File == nil || len(p.HostSeed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is not complete", EnvPod)
	}
	return &p, nil
}

// config returns the configuration of a server to which only the gateway connects, for
// one user.
func (p *podFile) config() (loginnode.Config, error) {
	f := p.File
	host, err1 := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(p.HostSeed))
	key, _, _, _, err2 := ssh.ParseAuthorizedKey([]byte(p.GatewayKey))
	f.UserProcesses, f.UserMemory = unlimited, unlimited // the pod's own limits are the user's
	session, err3 := f.session(func(string) {})          // and there is no cgroup to make
	policy, err4 := f.Forwarding.policy()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return loginnode.Config{}, err
	}
	if p.User.UID != os.Geteuid() {
		return loginnode.Config{}, fmt.Errorf(
			"the pod of user %s (uid %d) runs as uid %d",
			p.User.Name,
			p.User.UID,
			os.Geteuid(),
		)
	}
	return loginnode.Config{
		Auth: &auth.Config{Users: auth.DirectoryFunc(func(context.Context, string) (*auth.User, error) {
			return nil, auth.ErrUnknownUser // the gateway's key is the only way in
		})},
		HostKeys:           []ssh.Signer{host},
		Session:            session,
		Policy:             policy,
		RunDir:             f.RunDir,
		MaxSessions:        f.MaxSessions,
		MaxUserConnections: f.MaxUserConns,
		MaxUserChannels:    f.MaxUserChans,
		KeepAlive:          f.AliveInterval.Duration,
		KeepAliveMax:       f.AliveCountMax,
		Penalties:          limit.Penalties{Off: true},
		Gateway:            &loginnode.Gateway{Key: key, User: &p.User, Credential: p.Credential},
	}, nil
}
