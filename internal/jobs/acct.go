package jobs

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Records lists what accounting knows, the queue included.
func (c *Client) Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	list := new(status.RecordList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/records", url.Values{"q": {string(text)}}, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Associations reads accounts, users and QOS.
func (c *Client) Associations(ctx context.Context) (*status.AcctState, error) {
	state := new(status.AcctState)
	if err := c.api.Get(ctx, wire.QueueRoot+"/associations", nil, state); err != nil {
		return nil, queueError(err)
	}
	return state, nil
}

// Manage makes all of the changes, or none.
func (c *Client) Manage(ctx context.Context, changes []status.AcctChange) error {
	in := status.AcctChanges{Kind: "AssociationChanges", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion, Items: changes}
	return queueError(c.api.Post(ctx, wire.QueueRoot+"/associations", nil, in, nil))
}

// Usage reads what was used in a stretch of time.
func (c *Client) Usage(ctx context.Context, q *status.UsageQuery) (*status.UsageList, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	list := new(status.UsageList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/usage", url.Values{"q": {string(text)}}, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}

// Shares reads shares, usage and fair share, in the order of the tree.
func (c *Client) Shares(ctx context.Context) (*status.ShareList, error) {
	list := new(status.ShareList)
	if err := c.api.Get(ctx, wire.QueueRoot+"/shares", nil, list); err != nil {
		return nil, queueError(err)
	}
	return list, nil
}
