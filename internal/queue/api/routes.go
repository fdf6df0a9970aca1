package api

import (
	"net/http"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/attach"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
)

// Route is a path of the queue API.
type Route struct {
	// Pattern is the method and path, as for http.ServeMux.
	Pattern string
	// Class is the class of its requests. A watch is always in fairness.Watch; requests
	// for attach differ by their upgrade.
	Class   fairness.Class
	Handler Handler
	// LeaderOnly: the path writes, or shows what no object has, so that only the
	// process that leads can serve it.
	LeaderOnly bool
}

// classify returns the class of a request.
func (route Route) classify(r *http.Request) fairness.Class {
	switch {
	case route.Class == fairness.Attach && !attach.IsUpgrade(r):
		return fairness.Events
	case route.Class == fairness.Query && query.IsWatch(r.URL.Query()):
		return fairness.Watch
	}
	return route.Class
}

// routes returns the routes of this package.
func (a *API) routes() []Route {
	const (
		get  = "GET " + wire.QueueRoot
		post = "POST " + wire.QueueRoot
	)
	return []Route{
		{Pattern: get + "/jobs", Handler: a.jobs},
		{Pattern: get + "/jobs/{id}/pods", Handler: a.pods},
		{Pattern: get + "/jobs/{id}/attach", Class: fairness.Attach, Handler: a.attach.Serve, LeaderOnly: true},
		{Pattern: post + "/jobs/{id}/attach", Class: fairness.Attach, Handler: a.attach.Serve, LeaderOnly: true},
		{Pattern: get + "/steps", Handler: a.steps, LeaderOnly: true},
		{Pattern: get + "/scripts", Handler: a.script},
		{Pattern: get + "/nodes", Handler: a.nodes},
		{Pattern: get + "/partitions", Handler: a.partitions},
		{Pattern: get + "/topology", Handler: a.topology},
		{Pattern: get + "/reservations", Handler: a.reservations},
		{Pattern: get + "/licenses", Handler: a.licenses},
		{Pattern: get + "/priorities", Handler: a.priorities, LeaderOnly: true},
		{Pattern: get + "/shares", Handler: a.shares, LeaderOnly: true},
		{Pattern: get + "/clusterinfo", Handler: a.clusterInfo},
		{Pattern: get + "/statistics", Handler: a.statistics, LeaderOnly: true},
		{Pattern: post + "/statistics", Class: fairness.Operation, Handler: a.resetStatistics, LeaderOnly: true},
		{Pattern: post + "/tokens", Class: fairness.Operation, Handler: a.token, LeaderOnly: true},
		{Pattern: post + "/operations", Class: fairness.Operation, Handler: a.operate, LeaderOnly: true},
	}
}

// Register adds the API's paths to mux.
func (a *API) Register(mux *http.ServeMux) {
	for _, route := range a.routes() {
		a.Handle(mux, route)
	}
	for path, document := range discoveryDocuments() {
		a.Handle(mux, Route{Pattern: "GET " + path,
			Handler: func(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
				response.Bytes(w, r, http.StatusOK, document)
			}})
	}
}

// Handle adds a path of the queue API to mux.
func (a *API) Handle(mux *http.ServeMux, route Route) { mux.Handle(route.Pattern, a.chain(route)) }

// requestName returns the name of a route's requests in the statistics: "GET_JOBS".
func requestName(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimPrefix(path, wire.QueueRoot+"/")
	path = strings.TrimPrefix(path, "/")
	return strings.ToUpper(method + "_" + strings.NewReplacer("/{id}/", "_", "/", "_").Replace(path))
}
