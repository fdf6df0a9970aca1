package loginnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/forward"
	"github.com/berth-hpc/berth/loginnode/injob"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Nodes gives users access to the compute nodes of their jobs and to no others, like
// pam_slurm_adopt(8). A client that uses this server as a jump host to port 22 of a
// node is connected to this server again, which runs the client's sessions in the
// user's job on that node.
type Nodes struct {
	// Has reports whether a name is that of a compute node.
	Has func(name string) bool
	// Place returns the user's running job on a node; nil, nil: there is none.
	Place func(ctx context.Context, u *auth.User, node string) (*Place, error)
}

// Place is a user's job on a node.
type Place struct {
	Job int64
	// Inside starts programs in the job.
	Inside session.Inside
	// Address of the job on the node, for connections to it; invalid: unknown.
	Address netip.Addr
}

// nodePort is the port of a node's SSH server.
const nodePort = 22

// noJobMessage is the message of pam_slurm_adopt, with our name.
const noJobMessage = "Access denied by Berth: you have no active jobs on this node"

// unknownJobMessage is the message if the cluster cannot be asked; the log has the
// reason.
const unknownJobMessage = "Access denied by Berth: the cluster does not say whether you have a job on this node"

// reach implements forward.Forwarder.Reach.
func (c *conn) reach(ctx context.Context, name string, port uint32) (forward.Stream, string, error) {
	nodes, host := c.server.cfg.Nodes, strings.ToLower(name)
	switch {
	case c.isJobLoopback(host):
		stream, err := c.dialJob(ctx, port)
		return stream, "", err
	case c.outer != nil: // on a node already
		if !isLoopback(host) && host != c.node {
			return nil, "", forward.Refusal("from a node, only the node itself is reached")
		}
		return addressOf(c.place)
	case nodes == nil || !nodes.Has(name):
		return nil, "", nil
	case port == nodePort:
		stream, err := c.openNode(name)
		return stream, "", err
	}
	place, err := c.findPlace(ctx, c.login.User, name)
	if err != nil {
		return nil, "", err
	}
	return addressOf(place)
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// isJobLoopback reports whether host is the loopback interface of the job in which the
// sessions run.
func (c *conn) isJobLoopback(host string) bool {
	inside := c.inside()
	return inside != nil && inside.Connect != "" && isLoopback(host)
}

// dialJob connects to a port of the job's loopback interface by a program in the job.
func (c *conn) dialJob(ctx context.Context, port uint32) (forward.Stream, error) {
	if !c.server.cfg.Policy.Inside(port) {
		return nil, forward.ErrForbidden
	}
	p, err := session.Run(
		&c.server.session,
		c.sessionConn(),
		c.inside().Connect+" "+strconv.FormatUint(uint64(port), 10),
	)
	if err != nil {
		c.server.cfg.Log.Error("a connection into a job", "user", c.login.User.Name, "error", err)
		return nil, forward.Failure("the job cannot be reached")
	}
	stream, err := injob.Join(ctx, p.Out, p.In, p.Close)
	var refused injob.Refused
	switch {
	case errors.As(err, &refused):
		return nil, forward.Failure(plainText(string(refused)))
	case err != nil:
		c.server.cfg.Log.Warn("a connection into a job", "user", c.login.User.Name, "error", err)
		return nil, forward.Failure("the job does not answer")
	}
	return stream, nil
}

// plainText removes the characters from a job's message that could control a terminal.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || audit.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

func addressOf(p *Place) (forward.Stream, string, error) {
	if !p.Address.IsValid() {
		return nil, "", forward.Refusal("the job's address on this node is not known")
	}
	return nil, p.Address.String(), nil
}

// findPlace returns the user's job on a node, or a refusal.
func (c *conn) findPlace(ctx context.Context, u *auth.User, node string) (*Place, error) {
	p, err := c.server.cfg.Nodes.Place(ctx, u, node)
	if err != nil {
		c.server.cfg.Log.Warn("jobs on a node", "user", u.Name, "node", node, "error", err)
		return nil, forward.Refusal(unknownJobMessage)
	}
	if p == nil {
		return nil, forward.Refusal(noJobMessage)
	}
	return p, nil
}

// openNode serves a connection to a node, which this connection carries, and returns
// the client's end of it.
func (c *conn) openNode(node string) (forward.Stream, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	inner := newConn(c.server, ours)
	inner.outer, inner.node, inner.from = c, node, c.from
	c.server.run(inner, c.server.nodeHandler())
	return theirs, nil
}

// socketPair returns the two ends of a stream that supports half-closing.
func socketPair() (*net.UnixConn, *net.UnixConn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		end, ferr := net.FileConn(f) // a copy of the descriptor
		_ = f.Close()
		if err = errors.Join(err, ferr); ferr == nil {
			ends[i] = end.(*net.UnixConn)
		}
	}
	if err != nil {
		for _, end := range ends {
			if end != nil {
				_ = end.Close()
			}
		}
	}
	return ends[0], ends[1], err
}

// authorizeNode decides whether an authenticated user may use the connection. On one
// to a node, that is only the user whose connection carries it, and only with a job on
// the node.
func (s *Server) authorizeNode(c *conn, p *ssh.Permissions) (*ssh.Permissions, error) {
	if c.outer == nil {
		return p, nil
	}
	login, err := auth.FromPermissions(p)
	if err != nil {
		return nil, auth.ErrDenied
	}
	if own := c.outer.login.User; login.User.Name != own.Name || login.User.UID != own.UID {
		return nil, auth.ErrDenied
	}
	place, err := c.findPlace(c.ctx, login.User, c.node)
	if err != nil {
		return nil, &ssh.BannerError{Err: fmt.Errorf("node %s: %w", c.node, err), Message: err.Error() + "\r\n"}
	}
	c.place = place
	return p, nil
}

// inside returns how the sessions of this connection run programs in a job; nil: they
// run them here.
func (c *conn) inside() *session.Inside {
	if a := c.admission.Load(); a != nil {
		return a.Inside
	}
	if c.place == nil {
		return nil
	}
	return &c.place.Inside
}

// directTCP serves ssh -L, -D and -W.
func (c *conn) directTCP(nc ssh.NewChannel) {
	if c.link != nil && c.outer != nil && c.isJobLoopback(strings.ToLower(forward.Host(nc))) {
		c.relayChannel(nc) // the pod's server has the program that enters jobs
		return
	}
	if nodes := c.server.cfg.Nodes; c.link == nil || c.outer != nil || nodes != nil && nodes.Has(forward.Host(nc)) {
		c.forward.DirectTCP(nc)
		return
	}
	c.relayChannel(nc)
}

// forwardRequest serves ssh -R and its cancellation, but not on nodes.
func (c *conn) forwardRequest(r *ssh.Request) (bool, []byte) {
	switch {
	case c.outer != nil || !c.isAdmitted():
		return false, nil
	case c.link != nil:
		return c.relayRequest(r)
	}
	switch r.Type {
	case "tcpip-forward":
		return c.forward.Listen(r.Payload)
	case "cancel-tcpip-forward":
		return c.forward.Cancel(r.Payload), nil
	case "streamlocal-forward@openssh.com":
		return c.forward.ListenUnix(r.Payload), nil
	default:
		return c.forward.CancelUnix(r.Payload), nil
	}
}

// directUnix serves ssh -L to a Unix socket, but not on nodes.
func (c *conn) directUnix(nc ssh.NewChannel) {
	if c.outer != nil {
		_ = nc.Reject(ssh.Prohibited, "sockets of a node are not reached")
		return
	}
	if c.link != nil {
		c.relayChannel(nc)
		return
	}
	c.forward.DirectUnix(nc)
}
