package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Upgrade sends a POST that requests another protocol at path and returns the
// connection, which the caller closes. The connection also ends with ctx. The error is an
// *Error if the server refuses or cannot be reached.
func (c *Client) Upgrade(ctx context.Context, path, protocol string) (io.ReadWriteCloser, error) {
	resp, cancel, err := c.open(ctx, path, http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}})
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		cancel()
		resp.Body.Close()
		return nil, &Error{Kind: Other, Code: resp.StatusCode,
			Message: fmt.Sprintf("%s does not support the protocol %s", c.cfg.Server, protocol)}
	}
	return &upgraded{conn, cancel}, nil
}

// upgraded is a connection whose request's context ends when it is closed.
type upgraded struct {
	io.ReadWriteCloser
	cancel context.CancelFunc
}

func (u *upgraded) Close() error {
	defer u.cancel()
	return u.ReadWriteCloser.Close()
}

// open sends a request. Its timeout covers only the time until the response
// begins.
func (c *Client) open(ctx context.Context, path string, h http.Header) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.cfg.Server, "/")+path, nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	req.Header = h
	req.Header.Set("User-Agent", c.agent)
	if err := c.authorize(req); err != nil {
		cancel()
		return nil, nil, err
	}
	late := time.AfterFunc(requestTimeout, cancel)
	resp, err := c.doWithRetry(&http.Client{Transport: c.http.Transport}, req)
	late.Stop()
	if err != nil {
		cancel()
		return nil, nil, c.transportError(err)
	}
	if resp.StatusCode < 300 {
		return resp, cancel, nil
	}
	defer cancel()
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return nil, nil, c.transportError(err)
	}
	return nil, nil, c.statusError(resp.StatusCode, data)
}

// maxErrorBody bounds what is read of a response that reports an error, in bytes.
const maxErrorBody = 1 << 20
