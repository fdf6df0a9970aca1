package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/berth-hpc/berth/internal/eventually"
)

// otelCollector is OpenTelemetry's collector as a process.
type otelCollector struct {
	t                    *testing.T
	binary, config, addr string
	cmd                  *exec.Cmd
	out, errs            safeBuffer
}

// safeBuffer is a buffer that one process writes and the test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newOtelCollector builds the program of test/collector.
func newOtelCollector(t *testing.T) *otelCollector {
	t.Helper()
	dir := t.TempDir()
	c := &otelCollector{t: t, binary: filepath.Join(dir, "collector"), config: filepath.Join(dir, "config.yaml"), addr: "127.0.0.1:" + freePort(t)}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", c.binary, ".")
	cmd.Dir = "../collector"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	text := fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: %q}}}}\nexporters: {print: {}}\n"+
		"service: {pipelines: {traces: {receivers: [otlp], exporters: [print]}}}\n", c.addr)
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *otelCollector) start() {
	c.t.Helper()
	c.cmd = exec.Command(c.binary, "--config="+c.config)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.errs
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	cmd := c.cmd
	c.t.Cleanup(func() { c.kill(cmd) })
}

func (c *otelCollector) kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error is that it was killed
	}
}

// signal stops or continues the process.
func (c *otelCollector) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// of returns the names of the spans of a job, sorted.
func (c *otelCollector) of(job string) (names []string) {
	for line := range strings.Lines(c.out.String()) {
		var got tracepb.TracesData
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(line), &got); err != nil {
			continue // the line is not complete yet
		}
		for _, rs := range got.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					if jobOf(s) == job {
						names = append(names, s.Name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func (c *otelCollector) awaits(job, what string) {
	c.t.Helper()
	eventually.Holds(c.t, what, func() bool { return slices.Contains(c.of(job), "accounting") })
}

// TestCollector: OpenTelemetry's own collector receives the trace of a job. Jobs run as always while
// it is not there, while it hangs and after it was killed; what they did meanwhile arrives when it
// is back.
func TestCollector(t *testing.T) {
	t.Parallel()
	c := newOtelCollector(t)
	d := &database{start(t, "--nodes", "1", "--cpus", "2", "--trace-endpoint", "http://"+c.addr), t, "", ""}
	before := d.submit()
	d.awaitEnd(before)
	c.start()
	c.awaits(before, "the job of the time before the collector")

	code, out, errs := d.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "srun true")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	id := strings.TrimSpace(out)
	d.awaitEnd(id)
	c.awaits(id, "the trace of a job")
	want := strings.Fields("accounting admission completing job node pending plan running starting step step")
	if got := c.of(id); !slices.Equal(got, want) {
		t.Errorf("the job has the spans %v, want %v; the collector's errors:\n%s", got, want, c.errs.String())
	}

	c.signal(syscall.SIGSTOP)
	hanging := d.submit()
	d.awaitEnd(hanging)
	c.signal(syscall.SIGCONT)
	c.awaits(hanging, "the job of the time when the collector hung")

	c.kill(c.cmd)
	away := d.submit()
	d.awaitEnd(away)
	c.start()
	c.awaits(away, "the job of the time when the collector was away")
}
