package app

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// limitWrites has at most n of the client's requests that write be under way at a
// time; reads and watches are not counted. The API server lets a connection have
// 100 requests, and Go's transport opens another one for each that finds none
// free: a thousand at once are as many handshakes, which cost both sides several
// times what the writes do. It is not for a client on whose writes something
// waits that writes through the same client, such as an admission webhook.
func limitWrites(cfg *rest.Config, n int) {
	slots := make(chan struct{}, n)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fewWrites{next, slots} })
}

type fewWrites struct {
	next  http.RoundTripper
	slots chan struct{}
}

// RoundTrip waits for a slot, or for the end of the request's context.
func (w fewWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return w.next.RoundTrip(r)
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return w.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport beneath.
func (w fewWrites) WrappedRoundTripper() http.RoundTripper { return w.next }
