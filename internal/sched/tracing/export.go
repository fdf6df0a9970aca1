package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-hpc/berth/internal/build"
)

// Limits of the export. Spans that do not fit into the queue are dropped and counted:
// whatever the collector does, jobs do not wait for it.
const (
	queueSize     = 8192
	batchSize     = 512
	batchDelay    = time.Second
	exportTimeout = 10 * time.Second
	firstPause    = time.Second
	lastPause     = 30 * time.Second
	lastExport    = 2 * time.Second // when the process ends
)

// exporter sends spans to a collector.
type exporter struct {
	config  *Config
	url     string
	headers http.Header
	client  *http.Client
	queue   chan *tracepb.Span

	sent, dropped atomic.Int64
	failing       bool // the last export failed; used by run only
}

// newExporter reads the variables that OpenTelemetry defines for exporters: headers, and the
// authority of the collector's certificate.
func newExporter(c *Config, lookup func(string) (string, bool)) (*exporter, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a collector, such as http://collector:4318", c.Endpoint)
	}
	e := &exporter{
		config: c, url: strings.TrimSuffix(c.Endpoint, "/"), headers: http.Header{},
		queue: make(chan *tracepb.Span, queueSize),
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		e.url += "/v1/traces"
	}
	e.headers.Set("Content-Type", "application/x-protobuf")
	e.headers.Set("Content-Encoding", "gzip")
	e.headers.Set("User-Agent", "berth/"+build.Version)
	if list, ok := lookup("OTEL_EXPORTER_OTLP_HEADERS"); ok {
		if err := addHeaders(e.headers, list); err != nil {
			return nil, err
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute}
	if file, ok := lookup("OTEL_EXPORTER_OTLP_CERTIFICATE"); ok && file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate", file)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	e.client = &http.Client{Transport: transport, Timeout: exportTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return e, nil
}

// addHeaders adds the headers in a list such as "name=value,name=value", in which values are
// encoded as in URLs.
func addHeaders(to http.Header, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			// Not the list: it may have a secret.
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value, separated by commas")
		}
		to.Set(name, decoded)
	}
	return nil
}

// add queues the spans, or drops them.
func (e *exporter) add(spans ...*tracepb.Span) {
	for _, s := range spans {
		select {
		case e.queue <- s:
		default:
			e.dropped.Add(1)
		}
	}
}

// Run exports spans until ctx ends, and then what is left, as far as that is fast.
func (t *Tracer) Run(ctx context.Context) {
	if t == nil {
		return
	}
	e := t.exporter
	defer e.client.CloseIdleConnections()
	var batch []*tracepb.Span
	for ctx.Err() == nil {
		if batch = e.next(ctx); e.export(ctx, batch) {
			batch = nil
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExport)
	defer cancel()
	for batch = e.rest(batch); len(batch) > 0 && !e.failing; batch = e.rest(nil) {
		if !e.export(last, batch) {
			return
		}
	}
}

// Counts returns how many spans were sent and how many were dropped.
func (t *Tracer) Counts() (sent, dropped int64) {
	return t.exporter.sent.Load(), t.exporter.dropped.Load()
}

// next waits for spans, and for more of them until a batch is full or old. After ctx has
// ended it returns what it has.
func (e *exporter) next(ctx context.Context) []*tracepb.Span {
	var batch []*tracepb.Span
	select {
	case s := <-e.queue:
		batch = append(batch, s)
	case <-ctx.Done():
		return nil
	}
	due := time.NewTimer(batchDelay)
	defer due.Stop()
	for len(batch) < batchSize {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		case <-due.C:
			return batch
		case <-ctx.Done():
			return e.rest(batch)
		}
	}
	return batch
}

// rest adds queued spans to the batch, without waiting.
func (e *exporter) rest(batch []*tracepb.Span) []*tracepb.Span {
	for len(batch) < batchSize {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

// export sends the batch, and repeats that until the collector takes or refuses it. It
// returns false if ctx ends before.
func (e *exporter) export(ctx context.Context, batch []*tracepb.Span) bool {
	if len(batch) == 0 {
		return true
	}
	body, err := e.encode(batch)
	if err != nil {
		e.dropped.Add(int64(len(batch)))
		e.failed(err)
		return true
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		wait, err := e.post(ctx, body)
		switch {
		case err == nil:
			e.sent.Add(int64(len(batch)))
			e.succeeded()
			return true
		case ctx.Err() != nil:
			return false
		}
		e.failed(err)
		if wait < 0 {
			e.dropped.Add(int64(len(batch)))
			return true
		}
		timer := time.NewTimer(max(pause, min(wait, lastPause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// failed logs the first of several failures.
func (e *exporter) failed(err error) {
	if !e.failing {
		e.failing = true
		e.config.Log.Warn("traces are not exported; jobs are not affected", "endpoint", redacted(e.url), "error", err)
	}
}

// succeeded logs the end of a failure.
func (e *exporter) succeeded() {
	if e.failing {
		e.failing = false
		e.config.Log.Info("the collector of traces answers again")
	}
}

// redacted returns the URL without a password.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// encode returns the body of an ExportTraceServiceRequest, which has the encoding of a
// TracesData.
func (e *exporter) encode(batch []*tracepb.Span) ([]byte, error) {
	resource := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
		text("service.name", "berth"), text("service.version", build.Version),
		text("service.instance.id", e.config.Instance), text("berth.cluster", e.config.Cluster()),
	}}
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: resource,
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "github.com/berth-hpc/berth", Version: build.Version},
			Spans: batch,
		}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("encoding spans: %w", err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// post sends a request once. If it fails, wait is the least time until it may be repeated,
// and negative if it must not be.
func (e *exporter) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	r.Header = e.headers
	answer, err := e.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s")
		if err != nil {
			seconds = 0
		}
		return max(0, seconds), fmt.Errorf("the collector answers %s", answer.Status)
	}
	return -1, fmt.Errorf("the collector refuses spans: %s", answer.Status)
}
