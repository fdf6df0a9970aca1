// Package queue is the API role of the scheduler process: admission of jobs,
// the aggregated queue API, and the agents' server, on one port.
package queue

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/attach"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/queue/ids"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
)

// IDsName is the name of the ConfigMap in wire.SystemNamespace that holds the next job
// id.
const IDsName = "job-ids"

// Identities that are trusted unless Options name others.
var (
	DefaultTrusted     = []string{"system:berth-scheduler"}
	DefaultPodCreators = []string{"system:serviceaccount:kube-system:job-controller", "system:kube-controller-manager"}
)

// Options are the dependencies and settings of a Server. Cluster and Pool are required.
type Options struct {
	Cluster *control.Cluster
	Planner table.Planner     // nil: no plan is shown
	Checker admission.Checker // nil: everything is feasible
	// Forecast returns when jobs would start; nil: unknown.
	Forecast admission.Forecaster
	// Trace decides whether jobs are traced, as in admission.Config; nil: none is.
	Trace func(b *v1alpha1.BatchJob, began time.Time) string
	Pool  api.Pool
	// Agents sends commands to the agents and serves wire's agent paths; nil: signals
	// are dropped and the paths do not exist.
	Agents interface {
		attach.Agents
		http.Handler
	}
	Trusted     []string // nil: DefaultTrusted
	PodCreators []string // nil: DefaultPodCreators
	// OnlyAPIServer accepts webhook calls only with the front proxy's certificate,
	// which the API server must be configured to send (WebhookAdmissionConfiguration).
	OnlyAPIServer bool
	// WebhookSecret is the last element of the webhooks' paths; "": they have none.
	WebhookSecret string
	// Peer reports whether certificates are those of another API role.
	Peer func([]*x509.Certificate) bool
	// Unstored returns how many changes accounting has not written yet; nil: none.
	Unstored func() int
	// Highest returns the highest job id in the accounting database, which may be higher
	// than that of every job in a cluster that was restored from a backup; nil: there is no
	// database.
	Highest func(context.Context) (int64, error)
	// BulkCanceller cancels many jobs by one write; nil: each job is written by itself.
	BulkCanceller operations.BulkCanceller
	// Leader, if set, makes this a process that only reads: it forwards to the leader
	// what it cannot answer. nil: this process leads.
	Leader api.Leader
	Host   string // shown to users; "": the machine's name
	Now    func() time.Time
	Log    *slog.Logger
}

// Server is the handler of everything on the API role's port. Safe for concurrent
// use.
type Server struct {
	mux     *http.ServeMux
	ids     *ids.Allocator
	table   *table.Table
	api     *api.API
	admit   *admission.Admission
	leading atomic.Bool
	highest func(context.Context) (int64, error)
	log     *slog.Logger
}

// stateTimeout bounds how long scontrol suspend waits for the agents.
const stateTimeout = 5 * time.Second

// New returns a Server. Call it before the stores of o.Cluster are fed.
func New(o Options) (*Server, error) {
	if o.Cluster == nil || o.Pool == nil {
		return nil, errors.New("queue: Cluster and Pool are required")
	}
	o = o.withDefaults()
	dir := directory.New(o.Cluster, o.Trusted)
	s := &Server{highest: o.Highest, log: o.Log, mux: http.NewServeMux(), table: table.New(o.Cluster, dir, o.Planner)}
	s.ids = s.newIDs(o, dir)
	proxy := &frontproxy.Authenticator{Client: o.Cluster.Client, Now: o.Now, IsPeer: o.Peer}
	var caller func(*http.Request) error
	if o.OnlyAPIServer {
		caller = proxy.AuthenticateConnection
	}
	admit := admission.New(admission.Config{
		Directory: dir, IDs: s.ids, Jobs: s.table, Checker: o.Checker, Forecast: o.Forecast, Trace: o.Trace,
		Known: o.Cluster.Job, Read: reader(o.Cluster.Client),
		PodCreators: o.PodCreators, Caller: caller, Secret: o.WebhookSecret, Now: o.Now, Log: o.Log,
	})
	s.admit = admit
	if o.Leader == nil {
		admit.Register(s.mux)
	}
	s.api = api.New(api.Options{
		Directory: dir, Table: s.table, Pool: o.Pool, Host: o.Host, Now: o.Now,
		Proxy: proxy, Leader: o.Leader, Unstored: o.Unstored, NextID: s.ids.Peek,
		Agents: o.Agents,
		Operations: &operations.Service{
			Cluster: o.Cluster, Directory: dir, Table: s.table, Nodes: o.Pool.NodesView, Shows: o.Pool.Shows,
			Agents: o.Agents, Now: o.Now,
			Validate: admit.Validate, CheckBounds: admit.CheckChange, StateTimeout: stateTimeout,
			BulkCanceller: o.BulkCanceller,
		},
	})
	s.api.Register(s.mux)
	if _, none := o.Agents.(noAgents); !none {
		s.mux.Handle("POST /agent/v1/", o.Agents)
	}
	for _, path := range []string{"/healthz", "/livez"} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	}
	s.mux.HandleFunc("GET /readyz", s.ready)
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Trusted == nil {
		o.Trusted = DefaultTrusted
	}
	if o.PodCreators == nil {
		o.PodCreators = DefaultPodCreators
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Agents == nil {
		o.Agents = noAgents{http.NotFoundHandler()}
	}
	return o
}

// noAgents is the Agents of a role without agents.
type noAgents struct{ http.Handler }

func (noAgents) Send(int64, int32, wire.Command) {}

var errNoAgents = errors.New("this role has no agents")

func (noAgents) Dial(context.Context, *v1alpha1.BatchJob) (io.ReadWriteCloser, error) {
	return nil, errNoAgents
}

func (noAgents) Describe(*v1alpha1.BatchJob) (*wire.Welcome, error) { return nil, errNoAgents }

// newIDs returns the allocator of job ids.
func (s *Server) newIDs(o Options, dir *directory.Directory) *ids.Allocator {
	store := &ids.ConfigMap{Client: o.Cluster.Client, Namespace: wire.SystemNamespace, Name: IDsName}
	limits := func() ids.Limits {
		p := dir.Parameters()
		l := ids.Limits{First: p.FirstJobID, Max: p.MaxJobID}
		if p.Federation != nil {
			l = l.OfMember(p.Federation.ID)
		}
		return l
	}
	taken := func(id int64) bool { _, ok := o.Cluster.Job(id); return ok }
	return ids.New(store, ids.DefaultBlock, limits, taken)
}

// reader returns a function that reads a BatchJob from the API server.
func reader(c client.Client) func(context.Context, string, string) (*v1alpha1.BatchJob, error) {
	return func(ctx context.Context, namespace, name string) (*v1alpha1.BatchJob, error) {
		b := &v1alpha1.BatchJob{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b); err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Lead makes the server assign job ids and respond to requests. Call it once, when this
// process leads and its stores are filled. Until then the response to every request but
// those for /healthz and /livez is 503, so that no decision is made on empty stores.
func (s *Server) Lead(ctx context.Context) error {
	if err := s.ids.Start(ctx, s.highestID(ctx)); err != nil {
		return err
	}
	s.leading.Store(true)
	s.api.Lead(ctx)
	return nil
}

// accountingTimeout bounds the wait for accounting before this process leads. Its
// highest job id matters only where the cluster's own objects were lost.
const accountingTimeout = 5 * time.Second

// highestID returns the highest job id that was ever assigned, as far as the
// cluster and accounting know.
func (s *Server) highestID(ctx context.Context) int64 {
	highest := s.table.Highest()
	if s.highest == nil {
		return highest
	}
	ctx, cancel := context.WithTimeout(ctx, accountingTimeout)
	defer cancel()
	stored, err := s.highest(ctx)
	if err != nil {
		s.log.Warn("cannot read the highest job id of accounting; if the cluster was restored from a backup, job ids may be assigned twice", "error", err)
	}
	return max(highest, stored)
}

// Read makes the server respond to requests in a process that only reads. Call it once,
// when its stores are filled.
func (s *Server) Read() { s.leading.Store(true) }

// NextID assigns a job id to a job that the scheduler creates itself.
func (s *Server) NextID(ctx context.Context) (int64, error) { return s.ids.Next(ctx) }

// Close refuses further requests, stops the assignment of job ids, and returns those that
// were reserved and not used, so that the next leader assigns them.
func (s *Server) Close(ctx context.Context) error {
	s.leading.Store(false)
	return s.ids.Close(ctx)
}

// RecordSteps stores what a job's agent reports of its steps, for GET steps.
func (s *Server) RecordSteps(jobID int64, attempt int32, list []wire.StepRecord) {
	s.table.RecordSteps(jobID, attempt, list)
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// Table returns the queue as rows.
func (s *Server) Table() *table.Table { return s.table }

// API returns the queue API, for packages that add to it by Handle.
func (s *Server) API() *api.API { return s.api }

// Handle adds a path to the queue API. Call it before the server answers requests.
func (s *Server) Handle(route api.Route) { s.api.Handle(s.mux, route) }

// HandlePlain adds a path that does not belong to the queue API.
func (s *Server) HandlePlain(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Admit decides about BatchJobs in the API server's own process. It returns nil while
// this process does not lead.
type Admit func(ctx context.Context, mutating bool, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Admit answers as the webhooks do, for a caller that vouches for the user in the
// request.
func (s *Server) Admit(
	ctx context.Context, mutating bool, r *admissionv1.AdmissionRequest,
) *admissionv1.AdmissionResponse {
	if !s.leading.Load() {
		return nil
	}
	return s.admit.ReviewJob(ctx, mutating, r)
}

// ServeHTTP answers the API server and the agents.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.leading.Load() && r.URL.Path != "/healthz" && r.URL.Path != "/livez" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "this replica does not lead", http.StatusServiceUnavailable)
		return
	}
	s.mux.ServeHTTP(w, r)
}
