package api_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
)

// request sends one request for the user, and returns its answer's code and
// Retry-After header; 0: none came.
func (h *house) request(ctx context.Context, c *http.Client, user, path string) (code int, after string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.server.URL+wire.QueueRoot+path, nil)
	if err != nil {
		return 0, ""
	}
	r.Header.Set("X-Remote-User", user)
	resp, err := c.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

func (h *house) clients(t *testing.T) *http.Client {
	tr := h.server.Client().Transport.(*http.Transport).Clone()
	tr.TLSClientConfig.Certificates = append(tr.TLSClientConfig.Certificates, *h.proxy)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// One user's requests are answered a few at a time and the rest refused, and
// another user's do not wait for them.
func TestFloodOfQueries(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	entered, proceed := make(chan struct{}, 1000), make(chan struct{})
	h.viewing = func() { entered <- struct{}{}; <-proceed }
	client := h.clients(t)
	const flood = 100
	codes := make(chan int, flood)
	for range flood {
		go func() {
			code, after := h.request(t.Context(), client, "anna", "/nodes")
			if code == http.StatusTooManyRequests && after == "" {
				t.Error("no Retry-After")
			}
			codes <- code
		}()
	}
	most := max(1, min(4, runtime.GOMAXPROCS(0)/2))
	for range most {
		<-entered
	}
	for range flood - 64 - most { // what neither is answered nor waits
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Fatalf("answered %d", code)
		}
	}
	ben := make(chan int, 1)
	go func() {
		code, _ := h.request(t.Context(), client, "ben", "/nodes")
		ben <- code
	}()
	<-entered // ben's, or more of anna's than she may have
	if n := len(entered); n != 0 {
		t.Errorf("%d more requests of one user are being answered", n)
	}
	close(proceed)
	if code := <-ben; code != http.StatusOK {
		t.Errorf("ben: %d", code)
	}
	for range 64 + most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("of those that waited: %d", code)
		}
	}
}

// One user cannot wait for any number of jobs.
func TestFloodOfEvents(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	h.add(t, 2, "ben", nil)
	client := h.clients(t)
	refused := 0
	for range 300 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+wire.QueueRoot+"/jobs/1/attach", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", "anna")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 300-256 {
		t.Errorf("%d of 300 were refused", refused)
	}
	if code, _ := h.request(t.Context(), client, "ben", "/jobs/2/attach"); code != http.StatusOK {
		t.Errorf("ben: %d", code)
	}
}
