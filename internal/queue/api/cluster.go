package api

import (
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/status"
)

// nodes serves GET nodes.
func (a *API) nodes(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if !a.permit(w, r, c, authz.Node, authz.Read) {
		return
	}
	if query.IsWatch(r.URL.Query()) {
		a.watchNodes(w, r)
		return
	}
	response.JSON(w, r, &status.NodeList{Kind: "NodeList", APIVersion: apiVersion, Items: a.nodesView()})
}

// nodesView returns a row for each node, with its partitions in Slurm's order.
func (a *API) nodesView() []status.Node {
	rows := a.Pool.NodesView()
	a.Directory.SortNodePartitions(rows)
	return rows
}

// partitions serves GET partitions.
func (a *API) partitions(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if !a.permit(w, r, c, authz.Partition, authz.Read) {
		return
	}
	items := a.Pool.PartitionsView()
	a.Directory.SortPartitions(items)
	response.JSON(w, r, &status.PartitionList{Kind: "PartitionList", APIVersion: apiVersion, Items: items})
}

// topology serves GET topology.
func (a *API) topology(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if !a.permit(w, r, c, authz.Node, authz.Read) {
		return
	}
	t := a.Pool.TopologyView()
	t.Kind, t.APIVersion = "Topology", apiVersion
	response.JSON(w, r, t)
}

// clusterInfo serves GET clusterinfo.
func (a *API) clusterInfo(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	spec, err := json.Marshal(a.Directory.Parameters())
	if err != nil {
		response.Error(w, r, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	info := &status.ClusterInfo{
		Kind: "ClusterInfo", APIVersion: apiVersion, Version: build.Version, Slurm: build.Slurm,
		Time: a.Now().Unix(), Boot: a.start.Unix(), Host: a.Host,
		Jobs: a.Table.Len(), NextJobID: a.Table.Highest() + 1,
		Operator: c.Operator, Spec: spec,
	}
	if a.NextID != nil {
		info.NextJobID = max(info.NextJobID, a.NextID())
	}
	if c.User != nil {
		info.User, info.Namespace = c.User.Name, c.User.Spec.Namespace
	}
	response.JSON(w, r, info)
}

// PlanStatistics is a Pool that measures its planning, for GET statistics.
type PlanStatistics interface {
	// Stats returns the planner's numbers since the last reset.
	Stats() status.PlanStats
	ResetStats()
}

// resetStatistics serves POST statistics (sdiag --reset).
func (a *API) resetStatistics(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	if !a.permit(w, r, c, authz.Cluster, authz.Reset) {
		return
	}
	a.counters.Reset()
	if plan, ok := a.Pool.(PlanStatistics); ok {
		plan.ResetStats()
	}
	a.statistics(w, r, c)
}

// statistics serves GET statistics (sdiag).
func (a *API) statistics(w http.ResponseWriter, r *http.Request, _ *directory.Caller) {
	out, reset := a.counters.Snapshot()
	out.Kind, out.APIVersion, out.Time = "Statistics", apiVersion, a.Now().Unix()
	if plan, ok := a.Pool.(PlanStatistics); ok {
		if reset {
			plan.ResetStats()
		}
		out.Plan = plan.Stats()
	}
	out.Clock = clockCost()
	if a.Unstored != nil {
		out.Unstored = a.Unstored()
	}
	out.Pending, out.Running = a.Table.Count(v1alpha1.StatePending), a.Table.Count(v1alpha1.StateRunning)
	response.JSON(w, r, &out)
}

// RequestStats returns the statistics of requests by type, since midnight UTC or the last
// reset.
func (a *API) RequestStats() []status.RequestStats { return a.counters.Requests() }

// clockCost returns how many microseconds 1,000 readings of the clock take.
func clockCost() int64 {
	start := time.Now()
	for range 1000 {
		_ = time.Now()
	}
	return time.Since(start).Microseconds()
}
