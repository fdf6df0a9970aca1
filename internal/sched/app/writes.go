package app

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// limitWrites limits the client's writes in flight to n; reads and watches do not
// count. The API server allows 100 requests on a connection, and Go's transport opens
// another one for each request that finds none free: a thousand requests at once cause
// as many handshakes, which cost both sides several times as much as the writes. Do not
// use it for a client whose writes wait for other writes of the same client, such as
// those of an admission webhook.
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
