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

// Nodes lets users reach the compute nodes that their jobs run on, and no
// others (pam_slurm_adopt(8) is the model). A client that comes through this
// server as a jump host and asks for port 22 of a node meets this server again,
// which starts what the client asks for in the user's job there.
type Nodes struct {
	// Has tells whether a name is that of a compute node.
	Has func(name string) bool
	// Place finds the user's running job on a node; nil, nil: there is none.
	Place func(ctx context.Context, u *auth.User, node string) (*Place, error)
}

// Place is a user's job on a node.
type Place struct {
	Job int64
	// Inside starts programs in the job.
	Inside session.Inside
	// Address of the job on the node, for what listens there; invalid: unknown.
	Address netip.Addr
}

// nodePort is where a node's own server would listen.
const nodePort = 22

// noJob is what pam_slurm_adopt says, with our name.
const noJobMessage = "Access denied by Berth: you have no active jobs on this node"

// unknown is the answer when the cluster does not tell; the reason is in the log.
const unknownJobMessage = "Access denied by Berth: the cluster does not say whether you have a job on this node"

// reach is a connection's forward.Forwarder.Reach.
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

// connects tells whether a host is the loopback of the job that the sessions
// run in.
func (c *conn) isJobLoopback(host string) bool {
	inside := c.inside()
	return inside != nil && inside.Connect != "" && isLoopback(host)
}

// intoJob connects to a port of the job's loopback, by a program within the
// job: nothing that this machine listens on is meant.
func (c *conn) dialJob(ctx context.Context, port uint32) (forward.Stream, error) {
	if !c.server.cfg.Policy.Inside(port) {
		return nil, forward.ErrForbidden
	}
	p, err := session.Run(&c.server.session, c.sessionConn(), c.inside().Connect+" "+strconv.FormatUint(uint64(port), 10))
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

// plainText leaves out what could steer the terminal of who reads it: it is the
// job that says it.
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

// findPlace is where the user's job runs on a node, or a refusal.
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

// enterNode serves a connection to a node within this one, and returns the
// client's end.
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

// socketPair is a stream within the process that knows half-closing.
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

// admit decides, for a user who has proven to be that, whether the connection
// may go on: to a node only the user may come whose connection it is in, and
// only to a job.
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

// inside is how this connection's sessions run their programs; nil: here.
func (c *conn) inside() *session.Inside {
	if a := c.admission.Load(); a != nil {
		return a.Inside
	}
	if c.place == nil {
		return nil
	}
	return &c.place.Inside
}

// directTCP serves -L, -D and -W.
func (c *conn) directTCP(nc ssh.NewChannel) {
	if c.link != nil && c.outer != nil && c.isJobLoopback(strings.ToLower(forward.Host(nc))) {
		c.relayChannel(nc) // the pod's server has the program that starts things in jobs
		return
	}
	if nodes := c.server.cfg.Nodes; c.link == nil || c.outer != nil || nodes != nil && nodes.Has(forward.Host(nc)) {
		c.forward.DirectTCP(nc)
		return
	}
	c.relayChannel(nc)
}

// forwardRequest serves -R and its end, which are not for nodes.
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

// directUnix serves -L to a socket, which a node has none of.
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
