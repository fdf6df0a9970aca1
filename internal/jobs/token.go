package jobs

import (
	"context"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Token requests a token with which requests are made as the user, for the number of
// seconds; user "": the caller.
func (c *Client) Token(ctx context.Context, user string, seconds int64) (*status.Token, error) {
	in := &status.Token{Kind: "Token", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion, User: user, Life: seconds}
	out := new(status.Token)
	if err := c.api.Post(ctx, wire.QueueRoot+"/tokens", nil, in, out); err != nil {
		return nil, queueError(err)
	}
	return out, nil
}
