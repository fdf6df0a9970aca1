package kube

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxLine bounds one line of a stream, in bytes.
const maxLine = 64 << 20

// Stream sends a GET whose response is a stream of lines. It calls line with each of
// them, including its newline, until the stream ends, ctx is done or line returns an
// error, which Stream returns. The bytes are valid only during the call. The error is nil
// if the server ended the stream.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, line func([]byte) error) error {
	u := strings.TrimSuffix(c.cfg.Server, "/") + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	req.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {c.agent}}
	if err := c.authorize(req); err != nil {
		return err
	}
	withoutTimeout := *c.http
	withoutTimeout.Timeout = 0 // the stream may be silent for long
	resp, err := c.doWithRetry(&withoutTimeout, req)
	if err != nil {
		return c.transportError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if err != nil {
			return c.transportError(err)
		}
		return c.statusError(resp.StatusCode, data)
	}
	return c.readLines(resp.Body, line)
}

// readLines calls line with each complete line of body.
func (c *Client) readLines(body io.Reader, line func([]byte) error) error {
	in := bufio.NewReaderSize(body, 64<<10)
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			if err := line(part); err != nil {
				return err
			}
			continue
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
			if long = append(long, part...); len(long) > maxLine {
				return &Error{Kind: Other, Message: c.cfg.Server + " sent a line that is too long"}
			}
		case errors.Is(err, io.EOF):
			return nil // an incomplete line means that the connection broke
		default:
			return c.transportError(err)
		}
		if err == nil {
			if err := line(long); err != nil {
				return err
			}
			long = nil
		}
	}
}
