package tracing

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func noVariables(string) (string, bool) { return "", false }

// run runs the Tracer until the returned function is called, which waits for its end.
func run(t *testing.T, c Config, lookup func(string) (string, bool)) (*Tracer, func()) {
	t.Helper()
	x, err := New(c, lookup)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { x.Run(ctx) })
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return x, stop
}

// aSpan adds a span to the queue.
func (t *Tracer) aSpan() {
	t.exporter.add(span("x", [16]byte{1}, [8]byte{2}, [8]byte{}, 7, at(1), at(2)))
}

func TestExport(t *testing.T) {
	r := newReceiver(t)
	x, stop := run(t, r.config(), func(name string) (string, bool) {
		return " authorization=Bearer%20t , x-scope=a=b", name == "OTEL_EXPORTER_OTLP_HEADERS"
	})
	x.aSpan()
	// Before the exporter has the collector's answer, it would send the span once more at the end.
	eventually.Holds(t, "the span is sent", func() bool { sent, _ := x.Counts(); return sent == 1 })
	x.aSpan() // exported at the end
	stop()
	if sent, dropped := x.Counts(); sent != 2 || dropped != 0 || len(r.names()) != 2 {
		t.Errorf("%d sent, %d dropped, %d received", sent, dropped, len(r.names()))
	}
	if r.header.Get("Authorization") != "Bearer t" || r.header.Get("X-Scope") != "a=b" {
		t.Errorf("headers %v", r.header)
	}
	if r.resource["service.name"] != "berth" || r.resource["berth.cluster"] != "ring" || r.resource["service.instance.id"] != "here" {
		t.Errorf("resource %v", r.resource)
	}
}

// TestCollectorIsBusy: what a collector cannot take yet is sent again; what it refuses is not.
func TestCollectorIsBusy(t *testing.T) {
	r := newReceiver(t, http.StatusServiceUnavailable)
	x, _ := run(t, r.config(), noVariables)
	x.aSpan()
	r.await(1)
	r.mu.Lock()
	r.answers = []int{http.StatusBadRequest}
	r.mu.Unlock()
	x.aSpan()
	eventually.Holds(t, "the span is dropped", func() bool { _, dropped := x.Counts(); return dropped == 1 })
	x.aSpan()
	r.await(2)
	if r.requests != 4 {
		t.Errorf("%d requests", r.requests)
	}
}

// TestCollectorIsAway: spans of a leader whose collector does not answer are dropped when the
// queue is full. Nothing waits, one line is logged, and the end is not delayed.
func TestCollectorIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's listener
	r := newReceiver(t)
	for name, endpoint := range map[string]string{"silent": "http://" + l.Addr().String(), "refused": "http://127.0.0.1:1"} {
		var log strings.Builder
		c := r.config()
		c.Endpoint, c.Log = endpoint, slog.New(slog.NewTextHandler(&log, nil))
		x, stop := run(t, c, noVariables)
		for range 2*queueSize + batchSize {
			x.aSpan()
		}
		if _, dropped := x.Counts(); dropped < queueSize-batchSize {
			t.Errorf("%s: %d dropped", name, dropped)
		}
		stop()
		if n := strings.Count(log.String(), "\n"); n > 1 {
			t.Errorf("%s: %d lines:\n%s", name, n, log.String())
		}
	}
}

// TestCollectorsCertificate: the collector is authenticated by the authority in the variable.
func TestCollectorsCertificate(t *testing.T) {
	r := &receiver{t: t}
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	variable := func(value string) func(string) (string, bool) {
		return func(name string) (string, bool) { return value, name == "OTEL_EXPORTER_OTLP_CERTIFICATE" }
	}
	x, _ := run(t, r.config(), variable(file))
	x.aSpan()
	r.await(1)

	stranger, stop := run(t, r.config(), noVariables)
	stranger.aSpan()
	stop()
	if sent, _ := stranger.Counts(); sent != 0 {
		t.Error("spans were sent to a collector with an unknown certificate")
	}
	if _, err := New(r.config(), variable(file+"x")); err == nil {
		t.Error("no error about a file that does not exist")
	}
}

func TestEndpointsAndHeaders(t *testing.T) {
	r := newReceiver(t)
	for _, endpoint := range []string{"", "collector:4318", "grpc://collector:4317", "http://", "http://a b"} {
		c := r.config()
		if c.Endpoint = endpoint; endpoint == r.server.URL {
			continue
		}
		if _, err := New(c, noVariables); err == nil {
			t.Errorf("%q is accepted", endpoint)
		}
	}
	_, err := New(r.config(), func(string) (string, bool) { return "secret", true })
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("headers without a name: %v", err)
	}
	c := r.config()
	c.Endpoint += "/v1/traces"
	x, err := New(c, noVariables)
	if err != nil || x.exporter.url != c.Endpoint {
		t.Errorf("%v", err)
	}
}
