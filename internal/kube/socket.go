package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// socketTransport sends requests through the Unix socket of a local cluster, without TLS: only
// the cluster can have made the socket in its state directory, and the kernel shows nobody what
// passes through it. Most of the time of a short command's request would otherwise go into the
// handshake. If the socket does not answer, or the cluster does not know the token any more (it
// was restarted), the request and all later ones go to the server's address instead. Safe for
// concurrent use.
type socketTransport struct {
	socket  http.RoundTripper
	server  func() (http.RoundTripper, error) // by the server's address
	instead atomic.Bool
}

// withSocket returns a transport that prefers the socket at path. server is called once, and
// only if the server's address has to be used.
func withSocket(path string, server func() (http.RoundTripper, error)) *socketTransport {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &socketTransport{
		socket: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, "unix", path)
				if err != nil {
					return nil, &unreachable{err}
				}
				return conn, nil
			},
			DisableCompression: true,
			ReadBufferSize:     64 << 10,
		},
		server: sync.OnceValues(server),
	}
}

// unreachable is the error of a socket to which no connection is possible.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// RoundTrip implements http.RoundTripper.
func (t *socketTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.instead.Load() {
		resp, err := t.socket.RoundTrip(local(req))
		var none *unreachable
		switch {
		case errors.As(err, &none):
		case err == nil && resp.StatusCode == http.StatusUnauthorized:
			_ = resp.Body.Close()
		default:
			return resp, err
		}
		t.instead.Store(true)
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
	next, err := t.server()
	if err != nil {
		return nil, err
	}
	return next.RoundTrip(req)
}

// local returns req for the socket.
func local(req *http.Request) *http.Request {
	r := req.Clone(req.Context())
	r.URL.Scheme = "http"
	return r
}

// again returns req with its body from the beginning.
func again(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	r := req.Clone(req.Context())
	r.Body = body
	return r, nil
}
