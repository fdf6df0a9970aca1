// Package inprocess connects HTTP clients to a handler of the same process. A request is a
// call of the handler: without connection, TLS, and frames of HTTP/2, which for the small
// requests of controllers cost about as much as what the handler does.
package inprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// ErrNotServing is the error of requests before Serve and after the end of its context.
var ErrNotServing = errors.New("the server in this process does not serve requests")

// Server is a handler that can be reached from this process. The zero value does not serve
// yet. Safe for concurrent use.
type Server struct {
	mu      sync.RWMutex
	ctx     context.Context //nolint:containedctx // the time in which it serves
	handler http.Handler
}

// Serve makes clients reach the handler until ctx ends, which also ends the requests that are
// being answered then.
func (s *Server) Serve(ctx context.Context, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.handler = ctx, h
}

func (s *Server) serving() (context.Context, http.Handler, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.handler == nil || s.ctx.Err() != nil {
		return nil, nil, ErrNotServing
	}
	return s.ctx, s.handler, nil
}

// Transport returns a transport whose requests have the bearer token. Requests cannot switch
// to another protocol, and are not compressed.
func (s *Server) Transport(token string) http.RoundTripper { return &transport{s, "Bearer " + token} }

type transport struct {
	server        *Server
	authorization string
}

// RoundTrip implements http.RoundTripper. Like a connection, it transfers no values of the
// request's context to the handler.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	serving, handler, err := t.server.serving()
	if err != nil {
		closeBody(r)
		return nil, err
	}
	ctx, cancel := context.WithCancel(serving)
	unlink := context.AfterFunc(r.Context(), cancel)
	e := newExchange(ctx, func() { unlink(); cancel() })
	go e.serve(handler, t.incoming(ctx, r), func() { closeBody(r) })
	<-e.headed // also at the end of ctx
	return e.response(r)
}

// incoming returns the request as the handler receives it.
func (t *transport) incoming(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	if in.Header == nil {
		in.Header = http.Header{}
	}
	in.Header.Set("Authorization", t.authorization)
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	in.RequestURI = in.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// maxBuffered is how many bytes a handler can be ahead of the reader of its response.
const maxBuffered = 1 << 20

// exchange is the response to a request: the handler writes it, the client reads it.
type exchange struct {
	ctx    context.Context //nolint:containedctx // of the request
	stop   func()          // ends ctx
	headed chan struct{}   // closed when the client can have the head of the response

	mu      sync.Mutex
	changed sync.Cond   // of what is below
	header  http.Header // that the handler can change until it writes
	sent    http.Header // nil: the handler has not written yet
	code    int
	ready   bool   // headed is closed
	text    []byte // that was written and not read
	err     error  // of reading beyond the text; nil: more may come
}

func newExchange(ctx context.Context, stop func()) *exchange {
	e := &exchange{ctx: ctx, stop: stop, headed: make(chan struct{}), header: http.Header{}}
	e.changed.L = &e.mu
	context.AfterFunc(ctx, func() { e.end(ErrNotServing) })
	return e
}

// serve calls the handler.
func (e *exchange) serve(h http.Handler, r *http.Request, closeBody func()) {
	defer closeBody()
	defer func() {
		if p := recover(); p != nil { // as net/http does; the API server has logged it
			e.end(fmt.Errorf("the handler of %s %s ended the response: %v", r.Method, r.URL.Path, p))
		}
	}()
	h.ServeHTTP(e, r)
	e.WriteHeader(http.StatusOK) // unless it has written
	e.end(io.EOF)
	e.stop()
}

// end ends the response with the error, unless it has ended.
func (e *exchange) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checkEnd()
	if e.err == nil {
		e.err = err
	}
	e.release()
	e.changed.Broadcast()
}

// checkEnd notices the end of ctx before the function that waits for it is called, so that
// nothing is written after it. The caller holds the lock.
func (e *exchange) checkEnd() {
	if e.err == nil && e.ctx.Err() != nil {
		e.err = ErrNotServing
	}
}

// release gives the head of the response to the client. The caller holds the lock.
func (e *exchange) release() {
	if !e.ready {
		e.ready = true
		close(e.headed)
	}
}

// Header implements http.ResponseWriter.
func (e *exchange) Header() http.Header { return e.header }

// WriteHeader implements http.ResponseWriter.
func (e *exchange) WriteHeader(code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeHeader(code)
}

func (e *exchange) writeHeader(code int) {
	e.checkEnd()
	if e.sent == nil && e.err == nil && code >= http.StatusOK { // informational responses are not passed on
		e.sent, e.code = e.header.Clone(), code
	}
}

// Write implements http.ResponseWriter. It waits while the reader is far behind.
func (e *exchange) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeHeader(http.StatusOK)
	if len(e.text) > 0 && len(e.text)+len(p) > maxBuffered {
		e.release()
		for e.err == nil && len(e.text) > 0 {
			e.changed.Wait()
		}
	}
	e.checkEnd()
	if e.err != nil {
		return 0, e.err
	}
	e.text = append(e.text, p...)
	e.changed.Broadcast()
	return len(p), nil
}

// Flush implements http.Flusher.
func (e *exchange) Flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeHeader(http.StatusOK)
	e.release()
}

// CloseNotify implements http.CloseNotifier, which the API server's own writers expect of a
// writer that is an http.Flusher.
func (e *exchange) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(e.ctx, func() { closed <- true })
	return closed
}

// response returns what the client sees.
func (e *exchange) response(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent == nil {
		e.stop()
		return nil, cmp.Or(context.Cause(r.Context()), e.err)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", e.code, http.StatusText(e.code)), StatusCode: e.code,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: e.sent, Body: (*body)(e), ContentLength: -1, Request: r,
	}, nil
}

// body is the text of an exchange as the client reads it.
type body exchange

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.text) == 0 && b.err == nil {
		b.changed.Wait()
	}
	if len(b.text) == 0 {
		return 0, b.err
	}
	n := copy(p, b.text)
	if b.text = b.text[n:]; len(b.text) == 0 {
		b.text = nil
		b.changed.Broadcast()
	}
	return n, nil
}

// Close implements io.Closer. It ends the handler's context, as the end of a stream does.
func (b *body) Close() error {
	b.stop()
	return nil
}
