package httpserver_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/httpserver"
)

// start starts a server with the limits. change, unless nil, changes it first.
func start(t *testing.T, h http.HandlerFunc, change func(*http.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if change != nil {
		change(s.Config)
	}
	httpserver.SetLimits(s.Config)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestSilentConnections: beside a thousand connections without a request, a client's
// request is answered, and the server keeps only some of the connections.
func TestSilentConnections(t *testing.T) {
	var states atomic.Int64
	s := start(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") },
		func(s *http.Server) { s.ConnState = func(net.Conn, http.ConnState) { states.Add(1) } })
	before := descriptors(t)
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	heap := stats.HeapInuse + stats.StackInuse
	var silent []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	closed := 0
	for _, c := range silent[:1000-256] { // the oldest
		if err := c.SetReadDeadline(time.Now().Add(eventually.Timeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Fatalf("connection %d is open: %v", closed, err)
		}
		closed++
	}
	runtime.GC()
	runtime.ReadMemStats(&stats)
	if grown := int64(stats.HeapInuse+stats.StackInuse) - int64(heap); grown > 32<<20 {
		t.Errorf("the process grew by %d bytes", grown)
	}
	// This process has both ends of the connections: the clients' 1,000, and those that
	// the server kept.
	if n := descriptors(t) - before; n > 1000+256+20 {
		t.Errorf("%d more file descriptors", n)
	}
	if states.Load() == 0 {
		t.Error("the server's own ConnState was not called")
	}
}

// descriptors returns the number of open file descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	return len(list)
}

// TestBodyAfterBody: the time limit of a body affects neither its response nor the next
// request on the connection. A header that is too long is refused.
func TestBodyAfterBody(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, len(body))
	}, nil)
	for range 3 { // on one connection
		resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(text) != "1048576" {
			t.Errorf("%s, %v", text, err)
		}
	}
	r, err := http.NewRequest(http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Long", strings.Repeat("x", 2*httpserver.MaxHeaderBytes))
	if resp, err := s.Client().Do(r); err == nil {
		if resp.Body.Close(); resp.StatusCode < 400 {
			t.Errorf("a long header: %d", resp.StatusCode)
		}
	}
}

// TestUnreadBodiesDoNotStopOthers: on one HTTP/2 connection, such as the API server's,
// one user's requests wait with bodies that are not read yet. Another user's request
// with a body is nevertheless answered.
func TestUnreadBodiesDoNotStopOthers(t *testing.T) {
	const waiting = 100
	arrived, release := make(chan struct{}, waiting), make(chan struct{})
	s := start(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- struct{}{}
			<-release
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}, nil)
	post := func(path string, size int) {
		resp, err := s.Client().Post(s.URL+path, "text/plain", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Error(path, err)
			return
		}
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, resp.Proto, resp.Status)
		}
	}
	post("/now", 1) // the connection that all share
	var wg sync.WaitGroup
	for range waiting {
		wg.Go(func() { post("/wait", 256<<10) })
	}
	for range waiting {
		<-arrived
	}
	answered := make(chan struct{})
	go func() { post("/now", 1<<20); close(answered) }()
	select {
	case <-answered:
	case <-time.After(eventually.Timeout):
		t.Error("a request is not answered while others wait")
	}
	close(release)
	wg.Wait()
	<-answered
}
