package agentapi

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/wire"
)

// ErrNoAgent says that the job does not run and has no agent.
var ErrNoAgent = errors.New("the job does not run")

// Dial connects to the agent of the job's first node on behalf of a client. The
// caller has checked that the client has the owner's rights to this job, and closes
// the connection.
func (s *Server) Dial(ctx context.Context, b *v1alpha1.BatchJob) (io.ReadWriteCloser, error) {
	if !started(b) {
		return nil, ErrNoAgent
	}
	secret, err := s.key.get(ctx)
	if err != nil {
		return nil, err
	}
	uid, gang := s.gangOf(b)
	cert, key, err := certificate(secret, uid, gang)
	if err != nil {
		return nil, err
	}
	id, err := peer.NewIdentity(string(cert), string(key), 0)
	if err != nil {
		return nil, err
	}
	first := &b.Status.Allocation.Nodes[0]
	c, err := id.DialClient(ctx, first.Address)
	if err != nil {
		return nil, fmt.Errorf("the agent on %s: %w", first.Name, err)
	}
	return c, nil
}

// Describe returns what a client that waits for the job gets once it runs: the
// welcome of its first agent without keys, script and environment. The error is
// ErrNoAgent for a job that does not run.
func (s *Server) Describe(b *v1alpha1.BatchJob) (*wire.Welcome, error) {
	if !started(b) || !s.allStarted(b) {
		return nil, ErrNoAgent
	}
	w, err := s.describe(b, 0)
	if err != nil {
		return nil, err
	}
	w.Het, err = s.het(b)
	return w, err
}
