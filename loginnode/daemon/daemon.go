package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Peers has the functions that depend on the cluster.
type Peers struct {
	// Connect follows the cluster until ctx ends; nil: there is none. p describes the
	// pods of users; nil: users have no pods.
	Connect func(ctx context.Context, c Cluster, p *Pods, log func(string)) (*Connected, error)
	// Passwords returns the function that verifies passwords at the directory with this
	// configuration, in JSON. It returns nil only for the user's own password.
	Passwords func(config []byte) (func(ctx context.Context, user, password string) error, error)
}

// Connected is a cluster that is followed.
type Connected struct {
	Lookup     func(ctx context.Context, name string) (*auth.User, error)
	Credential func(ctx context.Context, u *auth.User) (*loginnode.Credential, error)
	// Revoked reports whether a user who logged in with the uid may no longer do so.
	Revoked func(name string, uid int) bool
	// Nodes lets users reach the nodes of their jobs; nil: no.
	Nodes *loginnode.Nodes
	// Pods start, list and remove users' pods (loginnode.Pods); nil: users have no pods.
	Pods *ConnectedPods
	// Server is host:port of the API server, to which no connection is forwarded.
	Server string
}

type peersOf struct {
	cluster *Connected
	authLog func(user, text string)
	warn    func(text string)
}

// Main is the program: `loginnode --config FILE`, or a session's child. args
// are without the program's name. It returns the exit code.
func Main(args []string, out, errs io.Writer, p Peers) int {
	if len(args) > 0 && args[0] == session.ChildCommand {
		return session.Child()
	}
	catchIgnored()
	if len(args) == 2 && args[0] == NamesCommand {
		return namesMain(args[1], errs)
	}
	if len(args) > 0 && args[0] == PodCommand && os.Getpid() != 1 {
		return podMain(errs, out)
	}
	syscall.Umask(asuser.Umask)
	if os.Getpid() == 1 {
		return reap(args, errs)
	}
	if err := start(args, out, errs, p); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(errs, "loginnode: error:", err)
		return 1
	}
	return 0
}

// catchIgnored catches the signals that nohup and a shell's & make this program ignore,
// so that its children do not ignore them: a session whose client vanishes in its first
// milliseconds would survive its signal. A caught signal has its default action again
// in an executed program.
func catchIgnored() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// Flags are the program's flags: the configuration file, and whether to check it only.
func Flags() (fs *pflag.FlagSet, config *string, check *bool) {
	fs = pflag.NewFlagSet("loginnode", pflag.ContinueOnError)
	config = fs.String("config", "/etc/berth/loginnode.yaml", "configuration `file`")
	check = fs.Bool("check", false, "check the configuration and exit")
	return fs, config, check
}

func start(args []string, out, errs io.Writer, p Peers) error {
	fs, config, check := Flags()
	fs.SetOutput(errs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	f, err := Read(*config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewJSONHandler(audit.Printable(errs), nil))
	s, err := build(ctx, f, log, out, p)
	if err != nil || *check {
		return err
	}
	return serve(ctx, stop, f, s, log)
}

// build returns the server for a configuration file.
func build(ctx context.Context, f *File, log *slog.Logger, out io.Writer, p Peers) (*loginnode.Server, error) {
	peers := &peersOf{
		authLog: func(user, text string) { log.Info("authentication", "user", user, "reason", text) },
		warn:    func(text string) { log.Warn(text) },
	}
	if f.Pods != nil {
		f.Pods.complete()
	}
	if f.Cluster != nil {
		if p.Connect == nil {
			return nil, errors.New("this program was built without support for clusters")
		}
		var err error
		peers.cluster, err = p.Connect(ctx, *f.Cluster, f.Pods, func(text string) { log.Warn(text) })
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	c, err := f.config(peers)
	if err != nil {
		return nil, err
	}
	if err := f.Passwords.config(&c, p); err != nil {
		return nil, err
	}
	c.Log = log
	if peers.cluster != nil {
		c.Identity, c.Nodes = peers.cluster.Credential, peers.cluster.Nodes
		f.revocation(&c, peers.cluster)
	}
	if f.Pods != nil {
		if c.Pods, err = f.pods(peers.cluster); err != nil {
			return nil, err
		}
	}
	if err := ownPorts(f, peers.cluster, &c.Policy); err != nil {
		return nil, err
	}
	if c.Audit, err = openAudit(f.Audit, out); err != nil {
		return nil, err
	}
	return loginnode.New(c)
}

// ownPorts forbids forwarding to the server's own ports and the API server.
func ownPorts(f *File, cluster *Connected, p *forward.Policy) error {
	targets := append([]string{}, f.Listen...)
	if f.Metrics != "" {
		targets = append(targets, f.Metrics)
	}
	for _, t := range targets {
		_, port, err := net.SplitHostPort(t)
		if err != nil {
			return err
		}
		if port == "0" {
			continue
		}
		// On every address of this machine.
		for _, a := range append(ownAddresses(), "127.0.0.0/8", "::1") {
			p.Deny = append(p.Deny, rules(a, port)...)
		}
	}
	if cluster == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(cluster.Server)
	if err != nil {
		return err
	}
	addrs := []string{host}
	if net.ParseIP(host) == nil {
		if addrs, err = net.LookupHost(host); err != nil {
			return fmt.Errorf("API server: %w", err)
		}
	}
	for _, a := range addrs {
		p.Deny = append(p.Deny, rules(a, port)...)
	}
	return nil
}

func rules(addr, port string) []forward.Rule {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	r, err := forward.ParseRule(addr)
	if err != nil {
		return nil
	}
	for i := range r {
		r[i].Port = uint16(n)
	}
	return r
}

func ownAddresses() []string {
	var out []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap().String())
			}
		}
	}
	return out
}

func openAudit(name string, out io.Writer) (io.Writer, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return out, nil
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// serve listens until a signal or, with EndWithInput, the end of the input, then drains. A
// second signal ends it at once.
func serve(ctx context.Context, release func(), f *File, s *loginnode.Server, log *slog.Logger) error {
	if len(f.Listen) == 0 {
		return errors.New("listen: no address")
	}
	defer runtime.KeepAlive(collectRarely())
	if f.EndWithInput {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end as well
			release()
		}()
	}
	failed := make(chan error, len(f.Listen)+1)
	for _, addr := range f.Listen {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		log.Info("listening", "address", l.Addr().String())
		go func() {
			if err := s.Serve(l); err != nil {
				failed <- err
			}
		}()
	}
	if f.Metrics != "" {
		l, err := net.Listen("tcp", f.Metrics)
		if err != nil {
			return err
		}
		h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
		defer func() { _ = h.Close() }()
		go func() { failed <- h.Serve(l) }()
	}
	select {
	case err := <-failed:
		s.Close()
		return err
	case <-ctx.Done():
	}
	release()
	grace, message := f.DrainGrace.Duration, f.DrainMessage
	if grace == 0 {
		grace = drainGrace
	}
	if message == "" {
		message = fmt.Sprintf(
			"*** This login node shuts down in %v at the latest. Please log in again: you will get another one. ***",
			grace,
		)
	}
	log.Info("draining", "grace", grace.String())
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	second := make(chan os.Signal, 1)
	signal.Notify(second, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(second)
	go func() {
		select {
		case <-second:
			cancel()
		case <-end.Done():
		}
	}()
	s.Drain(end, message)
	return nil
}
