package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// jobs serves GET jobs.
func (a *API) jobs(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	values := r.URL.Query()
	q, err := query.Parse(values)
	if err != nil {
		response.BadRequest(w, r, err)
		return
	}
	a.resolver().AddExtra(&q, values)
	unknownUsers := a.resolver().ResolveUsers(&q)
	if query.IsWatch(values) {
		a.watchJobs(w, r, c, q)
		return
	}
	a.resolver().Restrict(&q, c)
	a.Table.Await(r.Context(), q)
	rows := a.Table.Select(r.Context(), q)
	buf := response.NewBuffer()
	defer buf.Release()
	buf.Bytes = a.appendJobList(buf.Bytes[:0], rows, table.Project(query.List(values, "fields")), unknownUsers)
	response.Bytes(w, r, http.StatusOK, buf.Bytes)
}

// appendJobList appends a status.JobList as JSON.
func (a *API) appendJobList(b []byte, rows []*table.Row, fields *table.Projection, unknownUsers []string) []byte {
	b = append(b, `{"kind":"JobList","apiVersion":"`+apiVersion+`","time":`...)
	b = strconv.AppendInt(b, a.Now().Unix(), 10)
	if len(unknownUsers) > 0 {
		if text, err := json.Marshal(unknownUsers); err == nil {
			b = append(b, `,"unknownUsers":`...)
			b = append(b, text...)
		}
	}
	b = append(b, `,"items":`...)
	b = a.Table.AppendJSON(b, rows, fields)
	return append(b, '}')
}

// steps serves GET steps, with the filters of GET jobs and step=12.0,12.batch.
func (a *API) steps(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	values := r.URL.Query()
	named := map[string]bool{}
	for _, id := range query.List(values, "step") {
		job, _, _ := strings.Cut(id, ".")
		values.Add("id", job)
		named[id] = true
	}
	q, err := query.Parse(values)
	if err != nil {
		response.BadRequest(w, r, err)
		return
	}
	a.resolver().AddExtra(&q, values)
	out := &status.StepList{Kind: "StepList", APIVersion: apiVersion, Time: a.Now().Unix()}
	out.UnknownUsers = a.resolver().ResolveUsers(&q)
	a.resolver().Restrict(&q, c)
	out.Items = a.Table.Steps(r.Context(), q)
	if len(named) > 0 {
		out.Items = slices.DeleteFunc(out.Items, func(s status.Step) bool { return !named[s.ID] })
	}
	if out.Items == nil {
		out.Items = []status.Step{}
	}
	response.JSON(w, r, out)
}

// script serves GET scripts?id=12: a job's script and environment, for its owner
// and for operators.
func (a *API) script(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	out := &status.Script{Kind: "Script", APIVersion: apiVersion}
	b, err := a.jobWithScript(r, c)
	if err != nil {
		out.Error = operations.Message(err)
	} else {
		out.Script, out.Environment = b.Spec.Script, b.Spec.Environment
	}
	response.JSON(w, r, out)
}

// jobWithScript reads the job that the request names from the API server: the store
// has no scripts.
func (a *API) jobWithScript(r *http.Request, c *directory.Caller) (*v1alpha1.BatchJob, error) {
	ref, ok := query.ParseRef(r.URL.Query().Get("id"))
	if !ok {
		return nil, refusal.InvalidJobID
	}
	row := a.Table.Get(a.resolver().JobID(r.Context(), ref))
	if row == nil {
		return nil, refusal.InvalidJobID
	}
	b, err := a.Operations.Job(c, row, authz.Script)
	if err != nil {
		return nil, err
	}
	if b, err = a.Operations.Stored(r.Context(), b); err != nil {
		return nil, err
	}
	complete := &v1alpha1.BatchJob{}
	err = a.Operations.Cluster.Client.Get(r.Context(), client.ObjectKeyFromObject(b), complete)
	return complete, err
}
