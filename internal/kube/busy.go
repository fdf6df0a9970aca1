package kube

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// busyTime bounds how long a request is repeated that the server refuses for
// now, busyPause one of the pauses.
const (
	busyTime  = requestTimeout
	busyPause = 10 * time.Second
)

// exchange sends the request, and again as the server's Retry-After says while
// it answers 429: it has done nothing then. A refusal by Berth's admission is
// left to the caller, whose words for it differ.
func (c *Client) exchange(h *http.Client, req *http.Request) (*http.Response, error) {
	until := time.Now().Add(busyTime)
	for {
		resp, err := h.Do(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		given := err == nil
		pause := min(time.Duration(max(seconds, 0))*time.Second, busyPause)
		if !given || c.statusError(resp.StatusCode, body).Kind == Busy || time.Now().Add(pause).After(until) {
			return resp, nil
		}
		if !sleep(req.Context(), pause+rand.N(pause/4+time.Millisecond)) {
			return resp, nil
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// sleep waits and tells whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
