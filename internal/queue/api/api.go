// Package api serves the queue API, queue.berth.hpc/v1alpha1: the queue, nodes and
// partitions as rows, watches of them, and operations on jobs. The API server
// forwards requests to it (aggregation) after it has authenticated and authorised
// the caller; requests from anywhere else are refused.
//
// A request passes a chain of handlers (chain.go) on its way to that of its route
// (routes.go).
package api

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/attach"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/statistics"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Pool describes nodes and partitions.
type Pool interface {
	NodesView() []status.Node
	PartitionsView() []status.Partition // the caller may change the slice
	TopologyView() *status.Topology     // the caller may change its fields
	// Shows reports whether all of these include every change that this process had seen at
	// the instant.
	Shows(at time.Time) bool
}

// Leader is the process that plans and writes, for a process that only reads.
type Leader interface {
	// CatchUp returns when this process has seen what the leader had seen at the
	// time of the call, or when it has waited long enough.
	CatchUp(context.Context)
	// Forward lets the leader serve the request.
	Forward(http.ResponseWriter, *http.Request)
}

// Options are the dependencies and settings of an API. All are required unless they say
// otherwise.
type Options struct {
	Directory  *directory.Directory
	Table      *table.Table
	Pool       Pool
	Operations *operations.Service
	Agents     attach.Agents
	Proxy      *frontproxy.Authenticator
	// Contact is called with the identity, groups and extra attributes of every caller; nil:
	// nobody wants to know. It is set before the first request.
	Contact func(identity string, groups []string, extra func(key string) []string)
	// NextID returns the id that the next job will get; nil: one above the highest.
	NextID func() int64
	// Unstored returns the number of changes that accounting has yet to write; nil:
	// none.
	Unstored func() int
	// Leader is nil in the process that leads.
	Leader Leader
	// Host is shown to users; "": the name of the machine.
	Host string
	Now  func() time.Time
	// RefusalDelay is how long responses to refused requests are delayed; 0:
	// fairness.DefaultRefusalDelay.
	RefusalDelay time.Duration
}

// API is the handler of the queue API. Safe for concurrent use.
type API struct {
	Options
	start    time.Time
	limiter  *fairness.Limiter
	counters *statistics.Counters
	attach   *attach.Server
	nodeFeed *nodeFeed
}

// New returns an API. It must be called before the stores of the cluster are
// filled.
func New(o Options) *API {
	if o.Host == "" {
		o.Host, _ = os.Hostname() // shown only
	}
	a := &API{
		Options:  o,
		start:    o.Now(),
		limiter:  fairness.NewLimiter(o.RefusalDelay),
		counters: statistics.New(o.Now),
	}
	a.nodeFeed = newNodeFeed(a.nodesView, o.Operations.Cluster)
	a.attach = attach.New(attach.Options{
		Operations: o.Operations, Agents: o.Agents, Table: o.Table,
		Limiter: a.limiter, Proxy: o.Proxy, Now: o.Now,
	})
	o.Operations.Cluster.Jobs.Subscribe(a.counters.JobChanged)
	return a
}

// Lead starts what only the leader does, until ctx ends: it counts jobs, and
// cancels jobs whose client has gone away. It is called when the stores are
// filled.
func (a *API) Lead(ctx context.Context) {
	a.counters.StartJobs()
	go a.attach.CancelAbandoned(ctx)
}

func (a *API) resolver() query.Resolver {
	return query.Resolver{Table: a.Table, Directory: a.Directory}
}

// permit reports whether the caller may do the action to something that belongs to
// no user; if not, it sends the refusal.
func (a *API) permit(
	w http.ResponseWriter, r *http.Request, c *directory.Caller, object authz.Object, action authz.Action,
) bool {
	if a.Directory.Refusal(c.Roles(), object, action) == "" {
		return true
	}
	response.Forbidden(w, r, refusal.AccessDenied)
	return false
}

const apiVersion = wire.QueueGroup + "/" + wire.QueueVersion
