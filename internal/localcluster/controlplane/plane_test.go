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

// A server that is unhealthy at first is waited for; one that never gets
// healthy is given up when the start is.
func TestWaitFor(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	p := &Plane{config: Config{URL: s.URL}, rest: &rest.Config{Host: s.URL}}
	if err := p.waitFor(t.Context(), "/healthz", nil); err != nil || asked.Load() != 3 {
		t.Errorf("%v after %d", err, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.waitFor(ctx, "/never", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	failed := make(chan error, 1)
	failed <- errors.ErrUnsupported
	if err := p.waitFor(t.Context(), "/never", failed); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("something failed: %v", err)
	}
}
