// Package api serves the queue API, queue.berth.hpc/v1alpha1: the queue,
// nodes and partitions as rows, and operations on jobs. The API server
// forwards requests to it (aggregation), after it has authenticated and
// authorised the caller; nobody else is answered.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Pool describes nodes and partitions.
type Pool interface {
	NodesView() []status.Node
	PartitionsView() []status.Partition // the caller's own
}

// Leader is the process that plans and writes, for one that only reads.
type Leader interface {
	// CatchUp returns when this process has seen what the leader had seen at
	// the call, or when it has waited long enough.
	CatchUp(context.Context)
	// Forward has the leader answer.
	Forward(http.ResponseWriter, *http.Request)
}

// Options say what an API works with; all but Host and Leader are needed.
type Options struct {
	Directory  *directory.Directory
	Table      *table.Table
	Pool       Pool
	Operations *Operations
	Agents     Agents
	Proxy      *FrontProxy
	// NextID is the id that the next job will get; nil: one above the highest.
	NextID func() int64
	// Unstored is how many changes accounting has yet to write; nil: none.
	Unstored func() int
	// Leader is nil in the process that leads.
	Leader Leader
	Host   string
	Now    func() time.Time
}

// API is the handler of the queue API. Safe for concurrent use.
type API struct {
	Options
	boot   time.Time
	budget *userShares
	owners *owners
	diag   *diag
	feed   *nodeFeed
}

// New makes an API, before the stores of the Cluster are fed.
func New(o Options) *API {
	if o.Host == "" {
		o.Host, _ = os.Hostname() // shown only
	}
	a := &API{Options: o, boot: o.Now(), budget: newUserShares(), owners: newOwners(o.Now), diag: newDiag(o.Now)}
	a.feed = newNodeFeed(o.Pool.NodesView, o.Operations.Cluster)
	o.Operations.Cluster.Jobs.Subscribe(a.owners.jobChanged)
	o.Operations.Cluster.Jobs.Subscribe(a.diag.jobChanged)
	return a
}

// Serve answers a request of a caller who has been authenticated.
type Serve func(http.ResponseWriter, *http.Request, *directory.Caller)

// Handle adds a path of the queue API to mux. A request waits for its caller's
// share of the service before anything of it is read.
func (a *API) Handle(mux *http.ServeMux, pattern string, serve Serve) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		caller := a.caller(w, r)
		if caller == nil {
			return
		}
		leave, ok := a.enter(w, r, caller, shareOf(pattern, r))
		if !ok {
			return
		}
		defer leave()
		began := a.diag.begin()
		defer a.diag.end(began, kindOf(pattern), caller)
		if a.Leader != nil {
			a.Leader.CatchUp(r.Context())
		}
		serve(w, r, caller)
	})
}

// HandleLeading adds a path that only the process that leads can answer: it
// writes, or knows what no object says.
func (a *API) HandleLeading(mux *http.ServeMux, pattern string, serve Serve) {
	if a.Leader == nil {
		a.Handle(mux, pattern, serve)
		return
	}
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if caller := a.caller(w, r); caller != nil {
			a.Leader.Forward(w, r)
		}
	})
}

// Reply sends v as JSON, or says why it cannot.
func (a *API) Reply(w http.ResponseWriter, r *http.Request, v any) { a.list(w, r, v) }

// Refuse answers with a Status.
func Refuse(w http.ResponseWriter, r *http.Request, code int, reason metav1.StatusReason, text string) {
	refuse(w, r, code, reason, text)
}

// Register adds the API's paths to mux.
func (a *API) Register(mux *http.ServeMux) {
	handle := func(pattern string, serve Serve) { a.Handle(mux, pattern, serve) }
	leading := func(pattern string, serve Serve) { a.HandleLeading(mux, pattern, serve) }
	handle("GET "+wire.QueueRoot+"/jobs", a.jobs)
	leading("GET "+wire.QueueRoot+"/jobs/{id}/attach", a.attach)
	leading("POST "+wire.QueueRoot+"/jobs/{id}/attach", a.attach)
	handle("GET "+wire.QueueRoot+"/jobs/{id}/pods", a.pods)
	leading("GET "+wire.QueueRoot+"/steps", a.steps)
	handle("GET "+wire.QueueRoot+"/scripts", a.script)
	handle("GET "+wire.QueueRoot+"/nodes", a.nodes)
	handle("GET "+wire.QueueRoot+"/partitions", a.partitions)
	handle("GET "+wire.QueueRoot+"/reservations", a.reservations)
	handle("GET "+wire.QueueRoot+"/licenses", a.licenses)
	leading("GET "+wire.QueueRoot+"/priorities", a.priorities)
	leading("GET "+wire.QueueRoot+"/shares", a.shares)
	handle("GET "+wire.QueueRoot+"/clusterinfo", a.clusterInfo)
	leading("GET "+wire.QueueRoot+"/statistics", a.statistics)
	leading("POST "+wire.QueueRoot+"/statistics", a.statistics)
	leading("POST "+wire.QueueRoot+"/operations", a.operate)
	for path, document := range discovery() {
		handle("GET "+path, func(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
			reply(w, r, http.StatusOK, document)
		})
	}
}

// caller authenticates the request, or answers it.
func (a *API) caller(w http.ResponseWriter, r *http.Request) *directory.Caller {
	user, groups, err := a.Proxy.Identify(r)
	if err != nil {
		w.Header().Set("Connection", "close") // no stranger's connection is kept
	}
	switch {
	case errors.Is(err, ErrNotReady):
		refuse(w, r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
	case err != nil:
		refuse(w, r, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, err.Error())
	default:
		if err := checkQuery(r.URL.RawQuery); err != nil {
			refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return nil
		}
		return a.Directory.Resolve(user, groups)
	}
	return nil
}

func refuse(w http.ResponseWriter, r *http.Request, code int, reason metav1.StatusReason, text string) {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text,
	}
	body, err := json.Marshal(&s)
	if err != nil {
		http.Error(w, text, code)
		return
	}
	reply(w, r, code, body)
}

// hidden answers a caller who may not see that kind of thing.
func (a *API) hidden(w http.ResponseWriter, r *http.Request, c *directory.Caller, what authz.Object) bool {
	if a.Directory.Refusal(c.Roles(), what, authz.Read) == "" {
		return false
	}
	refuse(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, string(errDenied))
	return true
}

func apiVersion() string { return wire.QueueGroup + "/" + wire.QueueVersion }

func (a *API) nodes(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if a.hidden(w, r, c, authz.Node) {
		return
	}
	if watching(r.URL.Query()) {
		a.watchNodes(w, r)
		return
	}
	a.list(w, r, &status.NodeList{Kind: "NodeList", APIVersion: apiVersion(), Items: a.Pool.NodesView()})
}

func (a *API) partitions(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if a.hidden(w, r, c, authz.Partition) {
		return
	}
	items := a.Pool.PartitionsView()
	a.Directory.SortPartitions(items)
	a.list(w, r, &status.PartitionList{Kind: "PartitionList", APIVersion: apiVersion(), Items: items})
}

func (a *API) clusterInfo(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	spec, err := json.Marshal(a.Directory.Parameters())
	if err != nil {
		refuse(w, r, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	info := &status.ClusterInfo{
		Kind: "ClusterInfo", APIVersion: apiVersion(), Version: build.Version, Slurm: build.Slurm,
		Time: a.Now().Unix(), Boot: a.boot.Unix(), Host: a.Host, Jobs: a.Table.Len(), Operator: c.Operator, Spec: spec,
	}
	if info.NextJobID = a.Table.Highest() + 1; a.NextID != nil {
		info.NextJobID = max(info.NextJobID, a.NextID())
	}
	if c.User != nil {
		info.User = c.User.Name
	}
	a.list(w, r, info)
}

func (a *API) list(w http.ResponseWriter, r *http.Request, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		refuse(w, r, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	reply(w, r, http.StatusOK, body)
}
