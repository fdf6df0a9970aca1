// Package attach serves jobs/ID/attach of the queue API, over which srun, salloc,
// sattach and sbcast reach a job from outside. A request with an upgrade is relayed
// to the agent of the job's first node; any other receives the job's events. Jobs
// whose client has gone away are cancelled.
package attach

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
)

// Agents reach the agents of jobs.
type Agents interface {
	operations.Sender
	// Dial connects to the agent of the job's first node on behalf of a client
	// whose rights have been checked.
	Dial(ctx context.Context, b *v1alpha1.BatchJob) (io.ReadWriteCloser, error)
	// Describe returns what a client needs to know about a running job.
	Describe(b *v1alpha1.BatchJob) (*wire.Welcome, error)
}

// Options are the dependencies of a Server. All are required.
type Options struct {
	Operations *operations.Service
	Agents     Agents
	Table      *table.Table
	Limiter    *fairness.Limiter
	Proxy      *frontproxy.Authenticator
	Now        func() time.Time
}

// Server serves jobs/ID/attach. Safe for concurrent use.
type Server struct {
	Options
	clients *clients
}

// New returns a server. It must be called before the stores of the cluster are
// filled.
func New(o Options) *Server {
	s := &Server{Options: o, clients: newClients(o.Now)}
	o.Operations.Cluster.Jobs.Subscribe(s.clients.jobChanged)
	return s
}

// IsUpgrade reports whether the request is one for a connection to an agent.
func IsUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// Serve serves jobs/ID/attach to a caller.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	ref, ok := query.ParseRef(r.PathValue("id"))
	if !ok {
		response.NotFound(w, r, refusal.InvalidJobID)
		return
	}
	resolver := query.Resolver{Table: s.Table, Directory: s.Operations.Directory}
	id := resolver.JobID(r.Context(), ref)
	b, ok := s.job(id)
	switch {
	case !ok:
		response.NotFound(w, r, refusal.InvalidJobID)
	case s.Operations.Permit(c, b, authz.Job, authz.Events) != nil:
		response.Forbidden(w, r, refusal.AccessDenied)
	case r.Header.Get("Upgrade") == wire.AttachProtocol:
		s.relay(w, r, c, b)
	default:
		s.serveEvents(w, r, id)
	}
}

func (s *Server) job(id int64) (*v1alpha1.BatchJob, bool) { return s.Operations.Cluster.Job(id) }
