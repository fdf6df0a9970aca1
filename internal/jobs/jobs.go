// Package jobs is the client by which the commands and the terminal UI use a cluster. It
// submits jobs, lists jobs, nodes and partitions, and operates on jobs. It knows the paths
// and types of the API. Callers declare the few methods of Client that they need as an
// interface of their own.
package jobs

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Client sends requests to one cluster as one user. Unless a method says otherwise, its
// errors are those of package kube (*kube.Error). Client is safe for concurrent use.
type Client struct {
	api *kube.Client
	// nonce returns the random part of the name of a new object.
	nonce func() string
	trace trace
}

// Connect finds the cluster and returns a client for it. It sends no request.
func Connect(p *stdio.Process) (*Client, error) {
	api, err := kube.Connect(p, "")
	if err != nil {
		return nil, err
	}
	c := New(api)
	c.trace = traceOf(p)
	return c, nil
}

// New returns a client that uses an existing connection.
func New(api *kube.Client) *Client { return &Client{api: api, nonce: nonce} }

// Warnings registers fn to be called with each warning in the cluster's responses. Call
// it before the first request.
func (c *Client) Warnings(fn func(text string)) { c.api.Warn = fn }

// User returns the name of the Slurm user of the credential; "" if it is unknown.
func (c *Client) User() string { return c.api.Config().User() }

// Namespace returns the namespace of the user's jobs.
func (c *Client) Namespace() string { return c.api.Config().Namespace }

// AllStates as Filter.States selects jobs in every state.
var AllStates = []string{"all"}

// Filter selects jobs: those that match every list that is not empty. Without
// States, it selects jobs whose state is not final.
type Filter struct {
	IDs                            []string // "12", "12_3"
	Users                          []string // names or numbers
	States                         []string // PENDING, RUNNING, ..., or AllStates
	Partitions                     []string
	Names                          []string
	Accounts                       []string
	QOS                            []string
	Nodes                          []string // expanded
	Reservations, WCKeys, Licenses []string
	Hide                           bool // leave out jobs in hidden partitions

	Fields []string // JSON names of the fields of status.Job to return; empty: all
}

func (f *Filter) query() url.Values {
	q := url.Values{}
	add := func(name string, values []string) {
		if len(values) > 0 {
			q.Set(name, strings.Join(values, ","))
		}
	}
	add("id", f.IDs)
	add("user", f.Users)
	add("state", f.States)
	add("partition", f.Partitions)
	add("name", f.Names)
	add("account", f.Accounts)
	add("qos", f.QOS)
	add("nodes", f.Nodes)
	add("reservation", f.Reservations)
	add("wckey", f.WCKeys)
	add("licenses", f.Licenses)
	add("fields", f.Fields)
	if f.Hide {
		q.Set("hide", "true")
	}
	return q
}

// Jobs lists jobs in the server's order.
func (c *Client) Jobs(ctx context.Context, f Filter) (*status.JobList, error) {
	list := new(status.JobList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/jobs", f.query(), (*jobList)(list)); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Nodes lists all nodes of the pool.
func (c *Client) Nodes(ctx context.Context) (*status.NodeList, error) {
	list := new(status.NodeList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/nodes", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Partitions lists all partitions.
func (c *Client) Partitions(ctx context.Context) (*status.PartitionList, error) {
	list := new(status.PartitionList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/partitions", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// StepFilter selects steps: those that match every list that is not empty.
type StepFilter struct {
	IDs        []string // "12.0", "12.batch"
	Jobs       []string // "12", "12_3"
	Users      []string // names or numbers
	Partitions []string
	Nodes      []string // expanded
}

// Steps lists running steps.
func (c *Client) Steps(ctx context.Context, f StepFilter) (*status.StepList, error) {
	q := url.Values{}
	for name, values := range map[string][]string{"step": f.IDs, "id": f.Jobs, "user": f.Users,
		"partition": f.Partitions, "nodes": f.Nodes} {
		if len(values) > 0 {
			q.Set(name, strings.Join(values, ","))
		}
	}
	list := new(status.StepList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/steps", q, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Reservations lists all reservations.
func (c *Client) Reservations(ctx context.Context) (*status.ReservationList, error) {
	list := new(status.ReservationList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/reservations", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Licenses lists all licenses.
func (c *Client) Licenses(ctx context.Context) (*status.LicenseList, error) {
	list := new(status.LicenseList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/licenses", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Topology returns the switches above the nodes.
func (c *Client) Topology(ctx context.Context) (*status.Topology, error) {
	t := new(status.Topology)
	if err := c.api.Get(ctx, wire.QueueRoot+"/topology", nil, t); err != nil {
		return nil, queueError(err)
	}
	return t, nil
}

// PriorityFilter selects the jobs whose priorities are listed.
type PriorityFilter struct {
	IDs, Users, Partitions []string
}

// Priorities lists the factors of the priorities of pending jobs.
func (c *Client) Priorities(ctx context.Context, f PriorityFilter) (*status.PriorityList, error) {
	q := url.Values{}
	for name, values := range map[string][]string{"id": f.IDs, "user": f.Users, "partition": f.Partitions} {
		if len(values) > 0 {
			q.Set(name, strings.Join(values, ","))
		}
	}
	list := new(status.PriorityList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/priorities", q, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Script reads the batch script of a job ("12", "12_3"). Only its owner and operators may
// read it.
func (c *Client) Script(ctx context.Context, id string) ([]byte, error) {
	var got status.Script
	if err := c.api.Get(ctx, wire.QueueRoot+"/scripts", url.Values{"id": {id}}, &got); err != nil {
		return nil, err
	}
	if got.Error != "" {
		return nil, errors.New(got.Error)
	}
	return Decompress(got.Script)
}

// Environment returns the environment with which a job was submitted, as NAME=VALUE.
// Only its owner and operators may read it.
func (c *Client) Environment(ctx context.Context, id string) ([]string, error) {
	var got status.Script
	if err := c.api.Get(ctx, wire.QueueRoot+"/scripts", url.Values{"id": {id}}, &got); err != nil {
		return nil, err
	}
	if got.Error != "" {
		return nil, errors.New(got.Error)
	}
	data, err := Decompress(got.Environment)
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), err
}

// Cluster returns the name of the cluster. names are the clusters that the user
// named (-M); any other than this one is an error, in Slurm's words.
func (c *Client) Cluster(ctx context.Context, names []string) (string, error) {
	own := c.api.Config().ClusterName // of one of several clusters, which the command line chose
	if own == "" {
		info, err := c.ClusterInfo(ctx)
		if err != nil {
			return "", err
		}
		own = "berth"
		if spec, ok := info["spec"].(map[string]any); ok {
			if name, ok := spec["clusterName"].(string); ok && name != "" {
				own = name
			}
		}
	} else if slices.Contains(names, own) {
		return own, nil // the others are asked by clients of their own
	}
	for _, name := range names {
		if name != own && name != "all" {
			return "", slurmerr.Newf(slurmerr.Refused, "No cluster '%s' known by database.\n"+
				"'%s' can't be reached now, or it is an invalid entry for --cluster.  "+
				"Use 'sacctmgr list clusters' to see available clusters.", name, name)
		}
	}
	return own, nil
}

// Operate carries out an operation. The result has an item for every job. Operate sends
// the jobs that the server did not reach in time again, as long as there is progress.
func (c *Client) Operate(ctx context.Context, op status.Operation) (*status.OperationResult, error) {
	op.Kind, op.APIVersion = "Operation", wire.QueueGroup+"/"+wire.QueueVersion
	total := new(status.OperationResult)
	for {
		result := new(status.OperationResult)
		if err := c.api.Post(ctx, wire.QueueRoot+"/operations", nil, op, result); err != nil {
			return nil, queueError(err)
		}
		var late []string
		for _, item := range result.Items {
			if item.Code == status.CodeNotInTime {
				late = append(late, item.Job)
			}
		}
		noProgress := len(late) == len(result.Items)
		if len(late) == 0 || noProgress || op.Entity != "" && op.Entity != status.EntityJob {
			total.Items = append(total.Items, result.Items...)
			return total, nil
		}
		for _, item := range result.Items {
			if item.Code != status.CodeNotInTime {
				total.Items = append(total.Items, item)
			}
		}
		op.Jobs = late
	}
}

// infoPath is the path of the description of the cluster.
const infoPath = wire.QueueRoot + "/clusterinfo"

// ClusterInfo reads the cluster's description from the queue API.
func (c *Client) ClusterInfo(ctx context.Context) (map[string]any, error) {
	var info map[string]any
	if err := c.api.Get(ctx, infoPath, nil, &info); err != nil {
		return nil, queueError(err)
	}
	return info, nil
}

// Statistics reads the numbers that sdiag shows.
func (c *Client) Statistics(ctx context.Context) (*status.Diag, error) {
	d := new(status.Diag)
	if err := c.api.Get(ctx, wire.QueueRoot+"/statistics", nil, d); err != nil {
		return nil, queueError(err)
	}
	return d, nil
}

// ResetStatistics resets the counters of Statistics. Only operators may do that.
func (c *Client) ResetStatistics(ctx context.Context) error {
	err := c.api.Post(ctx, wire.QueueRoot+"/statistics", nil, struct{}{}, new(status.Diag))
	if kube.KindOf(err) == kube.Forbidden {
		return &slurmerr.Error{
			Code:   255,
			Before: []string{"slurm_reset_statistics: Access/permission denied"},
			Cause:  err,
		}
	}
	return queueError(err)
}

// queueError returns err with a message that says what to do if the queue API is
// missing or unavailable.
func queueError(err error) error {
	switch kube.KindOf(err) {
	case kube.NotFound:
		return &kube.Error{Kind: kube.NotFound, Cause: err,
			Message: "this cluster has no Berth queue (" + err.Error() + "): install Berth there, or set KUBECONFIG"}
	case kube.Unavailable:
		return &kube.Error{
			Kind:  kube.Unavailable,
			Cause: err,
			Message: "Berth's scheduler does not answer (" + strings.TrimSpace(
				err.Error(),
			) + "): try again, or read its log",
		}
	}
	return err
}

// ParseID parses a plain job id; ok is false for anything else.
func ParseID(s string) (id int64, ok bool) {
	id, err := strconv.ParseInt(s, 10, 64)
	return id, err == nil && id > 0
}

// Messages that commands print without asking the queue API. They are Slurm's.
const (
	ErrInvalidID = "Invalid job id specified"
	ErrDone      = "Job/step already completing or completed"
	ErrDenied    = "Access/permission denied"
)

// Server returns the host and port of the API server.
func (c *Client) Server() string {
	u, err := url.Parse(c.api.Config().Server)
	if err != nil {
		return c.api.Config().Server
	}
	return u.Host
}
