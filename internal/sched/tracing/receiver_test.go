package tracing

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/eventually"
)

// receiver receives OTLP over HTTP.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	spans    []*tracepb.Span
	resource map[string]string
	header   http.Header
	answers  []int // the first answers, in place of 200
	requests int
}

func newReceiver(t *testing.T, answers ...int) *receiver {
	r := &receiver{t: t, answers: answers}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if len(r.answers) > 0 {
		code := r.answers[0]
		r.answers = r.answers[1:]
		w.WriteHeader(code)
		return
	}
	z, err := gzip.NewReader(q.Body)
	if err != nil {
		r.t.Error(err)
		return
	}
	body, err := io.ReadAll(z)
	var got collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &got); err != nil || q.URL.Path != "/v1/traces" || q.Method != http.MethodPost {
		r.t.Errorf("%s %s: %v", q.Method, q.URL.Path, err)
	}
	if err != nil {
		r.t.Error(err)
	}
	r.header = q.Header
	for _, rs := range got.ResourceSpans {
		r.resource = attributesOf(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
}

// names returns the names of the spans that were received, sorted.
func (r *receiver) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.spans {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return out
}

func (r *receiver) await(n int) {
	r.t.Helper()
	eventually.Holds(r.t, fmt.Sprint(n, " spans"), func() bool { return len(r.names()) >= n })
}

// attributesOf returns the attributes as texts.
func attributesOf(list []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		if s, ok := a.Value.Value.(*commonpb.AnyValue_StringValue); ok {
			m[a.Key] = s.StringValue
			continue
		}
		m[a.Key] = fmt.Sprint(a.Value.GetIntValue())
	}
	return m
}

// config returns the configuration of a Tracer that knows the jobs and exports to r.
func (r *receiver) config(jobs ...*v1alpha1.BatchJob) Config {
	return Config{
		Endpoint: r.server.URL, Sample: 1, Instance: "here", Cluster: func() string { return "ring" },
		Job: func(id int64) (*v1alpha1.BatchJob, bool) {
			for _, b := range jobs {
				if b.Spec.JobID == id {
					return b, true
				}
			}
			return nil, false
		},
		Now: func() time.Time { return at(100) }, Log: discard(),
	}
}
