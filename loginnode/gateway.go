package loginnode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/session"
)

// Gateway configures the server in a user's pod (Pods). Only the gateway can log in,
// as that user, and it describes the client of each connection.
type Gateway struct {
	Key  ssh.PublicKey
	User *auth.User
	// Credential reports whether the gateway sends a credential for the cluster.
	Credential bool
}

// Requests of a gateway, beside those of SSH clients.
const (
	requestAdmit      = "admit@berth.hpc"      // an Admission; before any channel
	requestCredential = "credential@berth.hpc" // a Credential
	requestRetire     = "retire@berth.hpc"     // a retireRequest
)

// Admission is a gateway's description of a client that has logged in.
type Admission struct {
	Conn     string // the gateway's id of the connection, for the log
	From, To netip.AddrPort
	Options  auth.Options
	Inside   *session.Inside
}

type retireRequest struct{ Idle time.Duration }

// gatewayState is the state of a server in a pod.
type gatewayState struct {
	mu          sync.Mutex
	busy        time.Time // when it was last busy
	retired     bool
	retiredChan chan struct{} // closed when the gateway has been answered
	end         sync.Once

	cred  *Credential
	first chan struct{} // closed when there is a credential
	once  sync.Once
}

func newGatewayState(now time.Time) *gatewayState {
	return &gatewayState{busy: now, retiredChan: make(chan struct{}), first: make(chan struct{})}
}

// Retired returns a channel that is closed when the gateway has retired the pod, which
// may then end.
func (s *Server) Retired() <-chan struct{} { return s.gateway.retiredChan }

// gatewayKey authenticates the gateway, as the pod's user.
func (s *Server) gatewayKey(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	g := s.cfg.Gateway
	if m.User() != g.User.Name || !bytes.Equal(key.Marshal(), g.Key.Marshal()) {
		return nil, auth.ErrDenied
	}
	return auth.Proven(g.User, "gateway"), nil
}

// gatewayRequest answers the requests that only a gateway sends.
func (s *Server) gatewayRequest(c *conn, r *ssh.Request) (bool, []byte) {
	switch r.Type {
	case requestAdmit:
		var a Admission
		return json.Unmarshal(r.Payload, &a) == nil && s.admitted(c, &a), nil
	case requestCredential:
		var cred Credential
		if json.Unmarshal(r.Payload, &cred) != nil {
			return false, nil
		}
		s.gateway.mu.Lock()
		s.gateway.cred = &cred
		s.gateway.mu.Unlock()
		s.gateway.once.Do(func() { close(s.gateway.first) })
		s.credentials.renewNow(s.cfg.Gateway.User.UID)
		return true, nil
	case requestRetire:
		var q retireRequest
		if json.Unmarshal(r.Payload, &q) != nil || q.Idle <= 0 || !s.retire(q.Idle) {
			return false, nil
		}
		// The gateway must receive the answer before this process ends.
		_ = r.Reply(true, nil)
		r.WantReply = false
		s.gateway.end.Do(func() { close(s.gateway.retiredChan) })
		return true, nil
	}
	return false, nil
}

// admitted turns a connection of the gateway into that of a client, once.
func (s *Server) admitted(c *conn, a *Admission) bool {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	if s.gateway.retired {
		return false
	}
	c.login.Options = a.Options
	return c.admission.CompareAndSwap(nil, a)
}

// retire retires the pod if it has been idle for that long. No client is admitted
// afterwards.
func (s *Server) retire(idle time.Duration) bool {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	now := s.cfg.Now()
	if s.admittedConnections() > 0 || s.hasOtherProcesses() {
		s.gateway.busy = now
	}
	if now.Sub(s.gateway.busy) < idle {
		return false
	}
	s.gateway.retired = true
	return true
}

// admittedConnections returns the number of admitted connections.
func (s *Server) admittedConnections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.admission.Load() != nil {
			n++
		}
	}
	return n
}

// hasOtherProcesses reports whether processes of ended sessions are left, such as a
// tmux. It returns false unless the pod has a pid namespace of its own, in which this
// program is pid 1.
func (s *Server) hasOtherProcesses() bool {
	first, err1 := os.Readlink("/proc/1/exe")
	own, err2 := os.Readlink("/proc/self/exe")
	if errors.Join(err1, err2) != nil || first != own {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n != 1 && n != os.Getpid() {
			return true
		}
	}
	return false
}

// pushedCredential is the Identity of a server in a pod. It returns the credential
// that the gateway sent last.
func (s *Server) pushedCredential(ctx context.Context, _ *auth.User) (*Credential, error) {
	select {
	case <-s.gateway.first:
	case <-ctx.Done():
		return nil, errors.New("the gateway has not sent a credential")
	}
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	c := *s.gateway.cred
	c.Renew = time.Time{} // the gateway sends the next one
	return &c, nil
}

// source returns the client's address, in a pod as the gateway reports it.
func (c *conn) source() netip.AddrPort {
	if a := c.admission.Load(); a != nil {
		return a.From
	}
	return c.from
}

// local returns the address to which the client connected.
func (c *conn) local() netip.AddrPort {
	if a := c.admission.Load(); a != nil {
		return a.To
	}
	return addrPort(c.LocalAddr())
}

// isAdmitted reports whether channels may be opened: in a pod, only after the gateway
// has admitted the client.
func (c *conn) isAdmitted() bool { return c.server.cfg.Gateway == nil || c.admission.Load() != nil }
