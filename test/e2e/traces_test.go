package e2e

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-hpc/berth/internal/eventually"
)

// collector receives OTLP over HTTP, once it answers.
type collector struct {
	t       *testing.T
	address string
	answers chan struct{} // closed when it answers

	mu    sync.Mutex
	spans []*tracepb.Span
}

// newCollector returns a collector that accepts connections, and does not answer before
// answers is closed.
func newCollector(t *testing.T) *collector {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, address: "http://" + l.Addr().String(), answers: make(chan struct{})}
	s := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return c
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-c.answers:
	case <-r.Context().Done():
		return
	}
	var got collectorpb.ExportTraceServiceRequest
	z, err := gzip.NewReader(r.Body)
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(z); err == nil {
			err = proto.Unmarshal(body, &got)
		}
	}
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range got.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// of returns the spans of a job, by the job's id, or with "" all of a trace.
func (c *collector) of(job, trace string) (out []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if (job == "" || jobOf(s) == job) && (trace == "" || hex.EncodeToString(s.TraceId) == trace) {
			out = append(out, s)
		}
	}
	return out
}

func jobOf(s *tracepb.Span) string {
	for _, a := range s.Attributes {
		if a.Key == "berth.job.id" {
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

func namesOf(spans []*tracepb.Span) []string {
	var out []string
	for _, s := range spans {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return out
}

func has(spans []*tracepb.Span, name string) bool { return slices.Contains(namesOf(spans), name) }

// TestTraces: jobs run while the collector does not answer. Then the trace of a job has its
// whole life as one tree, which continues the trace of the command's environment, and which
// the job's own commands continue. Log lines have the job and the trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	d := &database{start(t, "--nodes", "2", "--cpus", "2", "--trace-endpoint", c.address), t, "", ""}
	early := d.submit()
	d.awaitEnd(early)
	close(c.answers)
	eventually.Holds(t, "the job of the time when the collector was away", func() bool { return has(c.of(early, ""), "accounting") })

	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	work := t.TempDir()
	if err := os.Chmod(work, 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(work, "job.sh")
	text := "#!/bin/bash\nsrun true\necho $TRACEPARENT\nsbatch --parsable -n1 --mem=10 -o /dev/null --wrap true\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.bin, "sbatch"), "--parsable", "-N2", "-o", filepath.Join(work, "out"), script)
	cmd.Env, cmd.Dir = append(d.environ(work), "TRACEPARENT=00-"+trace+"-00f067aa0ba902b7-01"), filepath.Dir(d.state)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(out))
	d.awaitEnd(id)
	output, err := os.ReadFile(filepath.Join(work, "out"))
	lines := strings.Fields(string(output))
	if err != nil || len(lines) != 2 {
		t.Fatalf("%v, %q", err, output)
	}
	inJob, nested := lines[0], lines[1]
	d.awaitEnd(nested)
	eventually.Holds(t, "the traces of both jobs", func() bool {
		return has(c.of(id, ""), "accounting") && has(c.of(nested, ""), "accounting")
	})
	want := strings.Fields("accounting admission completing job node node pending plan running sbatch starting step step")
	if got := namesOf(c.of(id, trace)); !slices.Equal(got, want) {
		t.Errorf("the job has the spans %v, want %v", got, want)
	}
	known := map[string]*tracepb.Span{}
	for _, s := range c.of("", trace) {
		known[hex.EncodeToString(s.SpanId)] = s
	}
	for _, s := range c.of("", trace) {
		parent := hex.EncodeToString(s.ParentSpanId)
		if known[parent] == nil && (parent != "00f067aa0ba902b7" || s.Name != "sbatch") {
			t.Errorf("%s of job %s has the unknown parent %s", s.Name, jobOf(s), parent)
		}
		if s.Name == "sbatch" && jobOf(s) == nested && (known[parent] == nil || known[parent].Name != "running") {
			t.Errorf("the parent of the command in the job is %v", known[parent])
		}
	}
	if s := known[strings.Split(inJob, "-")[2]]; s == nil || s.Name != "running" || jobOf(s) != id {
		t.Errorf("the job's TRACEPARENT %s is %v", inJob, s)
	}
	if len(c.of("", trace)) == len(c.of(id, trace)) {
		t.Error("the job that the script submitted is not in its trace")
	}

	_, long, _ := d.run("sbatch", "--parsable", "-w", "n2", "-o", "/dev/null", "--wrap", "sleep 600")
	long = strings.TrimSpace(long)
	d.awaitState(long, "RUNNING")
	d.run("scontrol", "update", "nodename=n2", "state=down", "reason=test")
	eventually.Holds(t, "a log line with job and trace", func() bool {
		for line := range strings.Lines(string(d.log())) {
			if strings.Contains(line, " job="+long+" ") && strings.Contains(line, " trace=") {
				return true
			}
		}
		return false
	})
	d.awaitState(long, "PENDING")
	d.run("scancel", long)
	eventually.Holds(t, "the trace of a cancelled job", func() bool { return has(c.of(long, ""), "accounting") })
	if got := strings.Join(namesOf(c.of(long, "")), " "); !strings.Contains(got, "pending pending plan running starting") {
		t.Errorf("the requeued job has the spans %s", got)
	}
}

func (d *database) awaitState(id, state string) {
	d.t.Helper()
	eventually.Holds(d.t, "job "+id+" is "+state, func() bool {
		_, out, _ := d.run("squeue", "-h", "-j", id, "-o", "%T")
		return strings.TrimSpace(out) == state
	})
}

// log returns the cluster's log.
func (d *database) log() []byte {
	b, err := os.ReadFile(filepath.Join(d.state, "log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}
