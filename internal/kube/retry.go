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

// Limits of the retries of a request that the server refuses with 429 (Too Many
// Requests): of all of them together, and of one pause.
const (
	maxRetryTime  = requestTimeout
	maxRetryPause = 10 * time.Second
)

// doWithRetry sends the request. If the server answers 429 (Too Many Requests), it has
// not carried out the request, so doWithRetry sends it again after the time in
// Retry-After. A 429 of Berth's admission is returned to the caller, because commands
// have their own messages for it.
func (c *Client) doWithRetry(h *http.Client, req *http.Request) (*http.Response, error) {
	deadline := time.Now().Add(maxRetryTime)
	for {
		resp, err := h.Do(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		hasRetryAfter := err == nil
		pause := min(time.Duration(max(seconds, 0))*time.Second, maxRetryPause)
		byAdmission := c.statusError(resp.StatusCode, body).Kind == Busy
		if !hasRetryAfter || byAdmission || time.Now().Add(pause).After(deadline) {
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

// sleep waits for d. It returns false if ctx is done before.
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
