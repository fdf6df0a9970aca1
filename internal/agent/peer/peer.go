// Package peer connects the agents of one job: TCP with mutual TLS, where each
// side shows the job's certificate and accepts that one and no other; and the
// unix socket for the processes of the job on the agent's own node, which asks
// the kernel who is there.
package peer

import (
	"bytes"
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

// handshakeTime bounds what a stranger can hold.
const handshakeTime = 10 * time.Second

// lostTime is how long a connection may be silent on unanswered data or
// probes before its host counts as lost.
const lostTime = 45 * time.Second

// What a connection is for, settled in the handshake (ALPN): another agent, or
// a client of the job that the API role has let in.
const (
	protocolAgent  = "berth-agent"
	protocolClient = "berth-client"
)

// Identity is the job's certificate, on both sides of a connection. It is
// safe for concurrent use.
type Identity struct{ config *tls.Config }

// errStranger is what a peer with another certificate gets.
var errStranger = errors.New("not an agent of this job")

// NewIdentity reads certificate and key (PEM).
func NewIdentity(certificate, key string) (*Identity, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("job's certificate: %w", err)
	}
	own := pair.Certificate[0]
	return &Identity{&tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS13,
		// Nobody waits for the first bytes of a frame: large records from the start.
		DynamicRecordSizingDisabled: true,
		ClientAuth:                  tls.RequireAnyClientCert,
		// The certificate is pinned byte for byte; names and dates in it mean
		// nothing. TLS has the peer prove that it has the key.
		InsecureSkipVerify: true,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) != 1 || !bytes.Equal(raw[0], own) {
				return errStranger
			}
			return nil
		},
		NextProtos:             []string{protocolAgent, protocolClient},
		SessionTicketsDisabled: true, // a resumed session would skip VerifyPeerCertificate
	}}, nil
}

// Accept does the server's side of a connection; it closes c on an error. agent
// is false for a client.
func (id *Identity) Accept(c net.Conn) (conn net.Conn, agent bool, err error) {
	keepAlive(c)
	t := tls.Server(c, id.config)
	if err := shake(context.Background(), t); err != nil {
		return nil, false, err
	}
	return t, t.ConnectionState().NegotiatedProtocol == protocolAgent, nil
}

// Dial connects to the agent at address (host:port), as an agent.
func (id *Identity) Dial(ctx context.Context, address string) (net.Conn, error) {
	return id.dial(ctx, address, protocolAgent)
}

// DialClient connects to the agent at address on behalf of a client, which can
// do no more than a process of the job.
func (id *Identity) DialClient(ctx context.Context, address string) (net.Conn, error) {
	return id.dial(ctx, address, protocolClient)
}

func (id *Identity) dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	keepAlive(c)
	config := id.config.Clone()
	config.NextProtos = []string{protocol}
	t := tls.Client(c, config)
	return t, shake(ctx, t)
}

func shake(ctx context.Context, t *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		t.Close()
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

// keepAlive makes a connection fail when the other host is gone.
func keepAlive(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}) //nolint:errcheck // best effort
	raw, err := tcp.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // best effort
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostTime.Milliseconds())) //nolint:errcheck // best effort
		})
	}
}

// Listen opens the unix socket in a folder that only the own uid can enter.
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

// Allowed tells whether the process at the other end of a unix socket has the
// given uid, or root's.
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
