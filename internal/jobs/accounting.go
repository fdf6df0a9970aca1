package jobs

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Records lists accounting records, with those of the jobs in the queue.
func (c *Client) Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error) {
	list := new(status.RecordList)
	return list, c.search(ctx, "/records", q, list)
}

// Associations reads accounts, users and QOS.
func (c *Client) Associations(ctx context.Context) (*status.AcctState, error) {
	state := new(status.AcctState)
	if err := c.api.Get(ctx, wire.QueueRoot+"/associations", nil, state); err != nil {
		return nil, queueError(err)
	}
	return state, nil
}

// Manage changes accounts, users and QOS: it makes all of the changes or none of them.
func (c *Client) Manage(ctx context.Context, changes []status.AcctChange) error {
	in := status.AcctChanges{
		Kind:       "AssociationChanges",
		APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Items:      changes,
	}
	return queueError(c.api.Post(ctx, wire.QueueRoot+"/associations", nil, in, nil))
}

// NodeEvents lists the events of nodes and of the cluster.
func (c *Client) NodeEvents(ctx context.Context, q *status.EventQuery) (*status.EventList, error) {
	list := new(status.EventList)
	return list, c.search(ctx, "/events", q, list)
}

// Transactions lists the changes made with sacctmgr.
func (c *Client) Transactions(ctx context.Context, q *status.TransactionQuery) (*status.TransactionList, error) {
	list := new(status.TransactionList)
	return list, c.search(ctx, "/transactions", q, list)
}

// Archive moves old records from the database into an archive, or loads an archive.
func (c *Client) Archive(ctx context.Context, r *status.ArchiveRequest) error {
	return queueError(c.api.Post(ctx, wire.QueueRoot+"/archives", nil, r, nil))
}

// search reads the list of accounting at path that matches the query q.
func (c *Client) search(ctx context.Context, path string, q, into any) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return queueError(c.api.Get(ctx, wire.QueueRoot+path, url.Values{"q": {string(text)}}, into))
}

// Usage reads the usage in a period (sreport).
func (c *Client) Usage(ctx context.Context, q *status.UsageQuery) (*status.UsageList, error) {
	list := new(status.UsageList)
	return list, c.search(ctx, "/usage", q, list)
}

// Shares reads shares, usage and fair share (sshare), in the order of the account tree.
func (c *Client) Shares(ctx context.Context) (*status.ShareList, error) {
	list := new(status.ShareList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/shares", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}
