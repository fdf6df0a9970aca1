// Package peer connects the agents of one job, over TCP with mutual TLS: both sides
// present the certificate of the job and accept no other. It also opens the Unix socket
// for the processes of the job on the agent's own node, whose uid the kernel reports.
package peer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handshakeTimeout limits how long an unauthenticated peer can keep a connection open.
const handshakeTimeout = 10 * time.Second

// lostTimeout is the time without a response to data or probes after which the host of a client
// is considered lost.
const lostTimeout = 45 * time.Second

// The two kinds of peers, negotiated in the handshake (ALPN): another agent, or a client
// of the job that the API role has authorized.
const (
	protocolAgent  = "berth-agent"
	protocolClient = "berth-client"
)

// Identity is the job's certificate, which both sides of a connection have. It is safe
// for concurrent use.
type Identity struct {
	config      *tls.Config
	nodeTimeout time.Duration
}

// errOtherCertificate is the error for a peer with another certificate.
var errOtherCertificate = errors.New("not an agent of this job")

// NewIdentity parses a certificate and its key (PEM). nodeTimeout is the time without a response
// after which another node of the job is considered lost; 0: 45 s, as for the host of a client.
func NewIdentity(certificate, key string, nodeTimeout time.Duration) (*Identity, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("job's certificate: %w", err)
	}
	own := pair.Certificate[0]
	return &Identity{nodeTimeout: cmp.Or(nodeTimeout, lostTimeout), config: &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS13,
		// Frames are only used when they are complete, so records may be large.
		DynamicRecordSizingDisabled: true,
		ClientAuth:                  tls.RequireAnyClientCert,
		// VerifyPeerCertificate compares the certificate byte for byte, so names and
		// dates in it do not matter. TLS verifies that the peer has the key.
		InsecureSkipVerify: true,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) != 1 || !bytes.Equal(raw[0], own) {
				return errOtherCertificate
			}
			return nil
		},
		NextProtos:             []string{protocolAgent, protocolClient},
		SessionTicketsDisabled: true, // a resumed session would skip VerifyPeerCertificate
	}}, nil
}

// Accept performs the server's handshake. It closes c after an error. isAgent is false
// for a client.
func (id *Identity) Accept(c net.Conn) (client net.Conn, isAgent bool, err error) {
	keepAlive(c, lostTimeout)
	out := &batch{Conn: c}
	t := tls.Server(out, id.config)
	if err := handshake(context.Background(), t); err != nil {
		return nil, false, err
	}
	isAgent = t.ConnectionState().NegotiatedProtocol == protocolAgent
	if isAgent {
		keepAlive(c, id.nodeTimeout)
	}
	return &conn{t, out}, isAgent, nil
}

// Dial connects to the agent at address (host:port), as an agent.
func (id *Identity) Dial(ctx context.Context, address string) (net.Conn, error) {
	return id.dial(ctx, address, protocolAgent)
}

// DialClient connects to the agent at address on behalf of a client, which has the
// rights of a process of the job.
func (id *Identity) DialClient(ctx context.Context, address string) (net.Conn, error) {
	return id.dial(ctx, address, protocolClient)
}

func (id *Identity) dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	timeout := lostTimeout
	if protocol == protocolAgent {
		timeout = id.nodeTimeout
	}
	keepAlive(c, timeout)
	config := id.config.Clone()
	config.NextProtos = []string{protocol}
	out := &batch{Conn: c}
	t := tls.Client(out, config)
	return &conn{t, out}, handshake(ctx, t)
}

// handshake performs the TLS handshake. It closes t after an error.
func handshake(ctx context.Context, t *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		t.Close()
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

// keepAlive makes a connection fail when the other host has not responded for the timeout.
func keepAlive(c net.Conn, timeout time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	tcp.SetKeepAliveConfig(net.KeepAliveConfig{ //nolint:errcheck // best effort
		Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3,
	})
	raw, err := tcp.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // best effort
			_ = unix.SetsockoptInt(
				int(fd),
				unix.IPPROTO_TCP,
				unix.TCP_USER_TIMEOUT,
				int(timeout.Milliseconds()),
			) //nolint:errcheck // best effort
		})
	}
}

// Listen opens the Unix socket in a directory that only the agent's uid can enter. It
// returns the socket's path.
func Listen(dir string) (*net.UnixListener, string, error) {
	path := filepath.Join(dir, "step.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, "", fmt.Errorf("listen for steps: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, "", fmt.Errorf("listen for steps: %w", err)
	}
	return l, path, nil
}

// Allowed reports whether the process at the other end of a Unix socket has the given
// uid, or that of root.
func Allowed(c *net.UnixConn, uid int) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	err2 := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return err == nil && err2 == nil && (int(cred.Uid) == uid || cred.Uid == 0)
}
