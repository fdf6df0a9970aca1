package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// streams is how many requests a connection may have in these tests, as with the API server.
const streams = 100

// writesServer answers POSTs once enough of them were there at the same time.
type writesServer struct {
	url    string
	client *http.Client
	dials  atomic.Int32
	now    atomic.Int32
	most   atomic.Int32
	enough chan struct{} // closed when there are as many as the client lets through
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
			close(w.enough)
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
	if err := w.do(t.Context(), http.MethodGet); err != nil { // as informers do before anything is written
		t.Fatal(err)
	}
	return w
}

func (w *writesServer) do(ctx context.Context, method string) error {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(""))
	if err != nil {
		return err
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// A gang of a thousand is let go at once: its bindings share the connection that
// there is.
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
		t.Errorf("%d writes were under way at a time over %d connections; want %d over one", most, dials, bindings)
	}
}

// Who waits for a slot does so until its request is over, and reads do not wait.
func TestWritesWaitForASlot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := newWritesServer(t, 2)
	var first sync.WaitGroup
	first.Go(func() {
		if err := w.do(ctx, http.MethodPost); err != nil {
			t.Error(err)
		}
	})
	for w.now.Load() == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	limited := fewWrites{w.client.Transport, make(chan struct{}, 1)}
	limited.slots <- struct{}{}
	over, end := context.WithCancel(ctx)
	end()
	r, err := http.NewRequestWithContext(over, http.MethodPost, w.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := limited.RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Errorf("a write without a slot: %v, %v; want that it was cancelled", answer, err)
	}
	if err := w.do(ctx, http.MethodGet); err != nil {
		t.Errorf("a read beside a write: %v", err)
	}
	if err := w.do(ctx, http.MethodPost); err != nil { // the second lets both go
		t.Error(err)
	}
	first.Wait()
}
