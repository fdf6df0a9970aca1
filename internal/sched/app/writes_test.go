package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// streams is the limit of requests on a connection in these tests, as in the API
// server.
const streams = 100

// writesServer responds to POSTs when enough of them wait at the same time.
type writesServer struct {
	url    string
	client *http.Client
	dials  atomic.Int32
	now    atomic.Int32  // requests in flight
	most   atomic.Int32  // requests that were in flight at the same time
	enough chan struct{} // closed when there are as many as the client allows
	once   sync.Once
}

func newWritesServer(t *testing.T, limit int) *writesServer {
	t.Helper()
	w := &writesServer{enough: make(chan struct{})}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		n := w.now.Add(1)
		for m := w.most.Load(); n > m && !w.most.CompareAndSwap(m, n); m = w.most.Load() {
		}
		if n == int32(limit) {
			w.once.Do(func() { close(w.enough) })
		}
		select {
		case <-w.enough:
		case <-r.Context().Done():
		}
		w.now.Add(-1)
	}))
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.StartTLS()
	t.Cleanup(s.Close)
	cfg := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
	limitWrites(cfg, limit)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.url, w.client = s.URL, client
	if err := w.do(t.Context(), http.MethodGet); err != nil { // like informers, before anything is written
		t.Fatal(err)
	}
	return w
}

func (w *writesServer) do(ctx context.Context, method string) error {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(""))
	if err != nil {
		return err
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A gang of a thousand pods is released at once: its bindings share the existing
// connection.
func TestWritesShareAConnection(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := newWritesServer(t, bindings)
	var wg sync.WaitGroup
	for range 10 * streams {
		wg.Go(func() {
			if err := w.do(ctx, http.MethodPost); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most, dials := w.most.Load(), w.dials.Load(); most != bindings || dials != 1 {
		t.Errorf("%d writes were in flight at a time over %d connections; want %d over one", most, dials, bindings)
	}
}

// transport is a function that sends requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A write waits for a slot until its context ends, and reads do not wait.
func TestWritesWaitForASlot(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	slots := make(chan struct{}, 1)
	var sent []string
	limited := fewWrites{transport(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Method)
		return nil, nil
	}), slots}
	for _, tt := range []struct {
		method string
		full   bool
		want   error
	}{
		{http.MethodPost, true, context.Canceled},
		{http.MethodGet, true, nil},
		{http.MethodHead, true, nil},
		{http.MethodPatch, false, nil},
		{http.MethodDelete, false, nil}, // the slot was released
	} {
		if tt.full {
			slots <- struct{}{}
		}
		r, err := http.NewRequestWithContext(ctx, tt.method, "https://127.0.0.1", http.NoBody)
		if !tt.full {
			r = r.WithContext(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := limited.RoundTrip(r); !errors.Is(err, tt.want) { //nolint:bodyclose // there is none
			t.Errorf("%s: %v, want %v", tt.method, err, tt.want)
		}
		if tt.full {
			<-slots
		}
	}
	if want := []string{"GET", "HEAD", "PATCH", "DELETE"}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}
