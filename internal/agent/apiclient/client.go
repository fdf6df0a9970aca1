// Package apiclient is the agent's client of the API role. It sends messages of package
// wire over HTTPS, and retries until it receives a response.
package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// Backoff between attempts, and timeouts. The API role holds a Hello and a CommandQuery
// for up to 60 s.
const (
	firstPause    = 50 * time.Millisecond
	maxPause      = 5 * time.Second
	answerTimeout = 90 * time.Second
	dialTimeout   = 5 * time.Second
)

// maxAnswer is the maximum size of an answer, in bytes. A Welcome contains script and
// environment, a few MiB at most.
const maxAnswer = 64 << 20

// FinalError is a response after which a retry would be useless.
type FinalError struct {
	Code int
	Text string
}

func (e *FinalError) Error() string { return fmt.Sprintf("refused with %d: %s", e.Code, e.Text) }

// Client is a client of the API role. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	token string // path

	mu   sync.Mutex
	urls []string // the one that responded last comes first
}

// New returns a Client that trusts ca and authenticates with the token in a file. The
// file is read for every request, because the kubelet replaces it.
func New(urls []string, ca *x509.CertPool, tokenPath string) *Client {
	t := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS13},
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 2, IdleConnTimeout: 2 * time.Minute,
		// With HTTP/2, a canceled request does not close the connection: tasks of an
		// array follow each other in milliseconds.
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &Client{http: &http.Client{Transport: t}, token: tokenPath, urls: append([]string(nil), urls...)}
}

// Hello reports the agent, and waits until all agents of the job have reported.
func (c *Client) Hello(ctx context.Context, h *wire.Hello) (*wire.Welcome, error) {
	var w wire.Welcome
	if err := c.send(ctx, wire.PathHello, h, &w); err != nil {
		return nil, err
	}
	return &w, nil
}

// Commands waits for commands after seq. It may return none.
func (c *Client) Commands(ctx context.Context, seq int64) ([]wire.Command, error) {
	var a wire.Commands
	err := c.send(ctx, wire.PathCommands, &wire.CommandQuery{After: seq}, &a)
	return a.Items, err
}

// Report sends r until it is recorded. next is true if the pod may get another job.
func (c *Client) Report(ctx context.Context, r *wire.Report) (next bool, err error) {
	var a wire.ReportAnswer
	err = c.send(ctx, wire.PathReport, r, &a)
	return a.Next, err
}

// Steps sends r until it is recorded.
func (c *Client) Steps(ctx context.Context, r *wire.StepReport) error {
	return c.send(ctx, wire.PathSteps, r, &struct{}{})
}

// Next waits for another job to run in the pod; the error is a *FinalError if there
// is none.
func (c *Client) Next(ctx context.Context, q *wire.NextQuery) (*wire.Welcome, error) {
	var w wire.Welcome
	if err := c.send(ctx, wire.PathNext, q, &w); err != nil {
		return nil, err
	}
	return &w, nil
}

// send posts in to all URLs in turn until one answers.
func (c *Client) send(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %T: %w", in, err)
	}
	pause := firstPause
	for {
		err := c.tryAll(ctx, path, body, out)
		var final *FinalError
		if err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last: %w)", path, ctx.Err(), err)
		}
		pause = min(pause*2, maxPause)
	}
}

// tryAll tries every URL once, beginning with the one that answered last.
func (c *Client) tryAll(ctx context.Context, path string, body []byte, out any) error {
	c.mu.Lock()
	urls := append([]string(nil), c.urls...)
	c.mu.Unlock()
	var last error
	for i, url := range urls {
		last = c.post(ctx, url+path, body, out)
		var final *FinalError
		if last == nil || errors.As(last, &final) {
			c.prefer(i)
			return last
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return last
}

// prefer makes a URL the first one.
func (c *Client) prefer(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i > 0 && i < len(c.urls) {
		c.urls[0], c.urls[i] = c.urls[i], c.urls[0]
	}
}

// post posts body to a URL and decodes the answer.
func (c *Client) post(ctx context.Context, url string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return &FinalError{Text: err.Error()}
	}
	token, err := os.ReadFile(c.token)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(b[:min(len(b), 500)]))
	switch {
	case resp.StatusCode == http.StatusOK:
		return json.Unmarshal(b, out)
	case resp.StatusCode == http.StatusUnauthorized:
		// The token has expired, or a clock is wrong. The kubelet replaces the token as soon as
		// it reaches the API server, and this request must not be lost until then.
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return &FinalError{Code: resp.StatusCode, Text: text}
	}
	return fmt.Errorf("%s: %s: %s", url, resp.Status, text)
}
