package controlplane

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// waitFor waits for a server that is unhealthy at first, and ends with the context or with a
// failure of the start.
func TestWaitFor(t *testing.T) {
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || requests.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	p := &Plane{config: Config{URL: s.URL}, rest: &rest.Config{Host: s.URL}}
	if err := p.waitFor(t.Context(), "/healthz", nil); err != nil || requests.Load() != 3 {
		t.Errorf("%v after %d", err, requests.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.waitFor(ctx, "/never", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	failed := make(chan error, 1)
	failed <- errors.ErrUnsupported
	if err := p.waitFor(t.Context(), "/never", failed); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the start failed: %v", err)
	}
}
