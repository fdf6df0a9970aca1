package tui

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
)

// mostResident bounds the memory of the program with 100,000 jobs, in MiB.
const mostResident = 150

// The program as a separate process uses less memory than mostResident with 100,000 jobs, which a
// server sends as the queue API does.
func TestResident(t *testing.T) {
	if os.Getenv("BERTH_TEST_RESIDENT") != "" {
		runResident(t)
		return
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, e := range longQueue() {
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
		}
		http.NewResponseController(w).Flush() //nolint:errcheck // the client may be gone
		<-r.Context().Done()
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := fmt.Sprintf(`current-context: long
contexts: [{name: long, context: {cluster: long, user: alice, namespace: user-alice}}]
clusters: [{name: long, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: alice, user: {token: t}}]
`, server.URL, base64.StdEncoding.EncodeToString(ca))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestResident$")
	cmd.Env = append(os.Environ(), "BERTH_TEST_RESIDENT=1", "KUBECONFIG="+path, "HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program has ended: %v", err)
	}
	now, peak := memory(t, cmd.Process.Pid)
	t.Logf("%s: %d MiB resident, %d at most", strings.TrimSpace(line), now, peak)
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if now > mostResident && !racing {
		t.Errorf("%d MiB resident with %d jobs", now, many)
	}
}

// memory returns the resident memory of a process and its maximum, in MiB.
func memory(t *testing.T, pid int) (now, peak int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 { //nolint:errcheck // another line
			now = kib >> 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 { //nolint:errcheck // another line
			peak = kib >> 10
		}
	}
	return now, peak
}

// runResident is the program of the child process. It prints a line when all jobs are
// on the screen, and exits at the end of its input.
func runResident(t *testing.T) {
	debug.SetGCPercent(100) // as Run does
	p := stdio.System()
	c, err := jobs.Connect(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m, err := New(ctx, p, c, jobs.Screen{NoMouse: true})
	if err != nil {
		t.Fatal(err)
	}
	complete := make(chan struct{})
	prog := tea.NewProgram(
		&countingModel{m, complete},
		tea.WithContext(ctx),
		tea.WithInput(nil),
		tea.WithOutput(io.Discard),
		tea.WithWindowSize(200, 60),
		tea.WithoutSignals(),
	)
	done := make(chan struct{})
	go func() { _, _ = prog.Run(); close(done) }()
	select {
	case <-complete:
	case <-time.After(eventually.Timeout):
		t.Fatal("not all jobs have arrived")
	}
	fmt.Fprintf(os.Stdout, "%d jobs\n", many)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	<-done
}

// countingModel closes complete when all jobs have arrived.
type countingModel struct {
	*Model
	complete chan struct{}
}

func (c *countingModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := c.Model.Update(msg)
	if c.complete != nil && c.queue.Counts()["PENDING"]+c.queue.Counts()["RUNNING"] == many {
		close(c.complete)
		c.complete = nil
	}
	return c, cmd
}
