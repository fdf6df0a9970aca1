package api_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
)

// request sends one request of the user and returns the code of the response, or 0
// if there is none, and its header Retry-After.
func (s *server) request(ctx context.Context, c *http.Client, user, path string) (code int, after string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL+wire.QueueRoot+path, nil)
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

func (s *server) client(t *testing.T) *http.Client {
	tr := s.http.Client().Transport.(*http.Transport).Clone()
	tr.TLSClientConfig.Certificates = append(tr.TLSClientConfig.Certificates, *s.proxy)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestFloodOfQueries: a few requests of a user are served at a time, a number
// waits, and the rest is refused; another user's request does not wait for them.
func TestFloodOfQueries(t *testing.T) {
	s := newServer(t)
	entered, proceed := make(chan struct{}, 1000), make(chan struct{})
	s.viewing = func() { entered <- struct{}{}; <-proceed }
	client := s.client(t)
	const flood = 100
	codes := make(chan int, flood)
	for range flood {
		go func() {
			code, after := s.request(t.Context(), client, "anna", "/nodes")
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
	for range flood - 64 - most { // those that are neither served nor wait
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Fatalf("response %d", code)
		}
	}
	ben := make(chan int, 1)
	go func() {
		code, _ := s.request(t.Context(), client, "ben", "/nodes")
		ben <- code
	}()
	<-entered // ben's, or one too many of anna's
	if n := len(entered); n != 0 {
		t.Errorf("%d more requests of one user are being served", n)
	}
	close(proceed)
	if code := <-ben; code != http.StatusOK {
		t.Errorf("ben: %d", code)
	}
	for range 64 + most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request that waited: %d", code)
		}
	}
}

// TestFloodOfEvents: a user has a limited number of jobs that its commands wait for.
func TestFloodOfEvents(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", nil)
	s.add(t, 2, "ben", nil)
	client := s.client(t)
	refused := 0
	for range 300 {
		r, err := http.NewRequestWithContext(
			t.Context(), http.MethodGet, s.http.URL+wire.QueueRoot+"/jobs/1/attach", nil,
		)
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
	if code, _ := s.request(t.Context(), client, "ben", "/jobs/2/attach"); code != http.StatusOK {
		t.Errorf("ben: %d", code)
	}
}
