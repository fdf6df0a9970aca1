package attach

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
)

// TestOpenAt: an API server that dies closes all connections at once. One that
// closes a connection a while after a client's has outlived the client.
func TestOpenAt(t *testing.T) {
	ended := time.Now()
	for _, c := range []struct {
		name   string
		closed time.Duration // after the client's; 0: never
		want   bool
	}{
		{"open", 0, true},
		{"together with the client's", time.Millisecond, false},
		{"later, because it was idle", outliveTime + time.Second, true},
	} {
		other := &connection{}
		if c.closed > 0 {
			other.closed.Store(ended.Add(c.closed).UnixNano())
		}
		if got := other.openAt(ended.Add(outliveTime)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestTrackConnections: the connection of a request that an HTTP/2 client cancels
// stays open; its end is recorded.
func TestTrackConnections(t *testing.T) {
	ended := make(chan *connection, 2)
	started := make(chan struct{}, 2)
	server := &Server{Options: Options{Proxy: &frontproxy.Authenticator{}}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
		ended <- server.connectionOf(r)
	}))
	TrackConnections(s.Config)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	var conn net.Conn
	transport := s.Client().Transport.(*http.Transport) //nolint:forcetypeassert // httptest's
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		conn = c
		return c, err
	}
	get := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := s.Client().Do(req); err == nil {
			io.Copy(io.Discard, resp.Body) //nolint:errcheck // the response is cut off
			resp.Body.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go get(ctx)
	<-started
	cancel()
	first := <-ended
	if !first.isOpen() {
		t.Error("the connection ended with the request")
	}
	if others := first.others(); len(others) > 0 {
		t.Errorf("%d other connections of the only one", len(others))
	}
	if others := (&connection{host: first.host, all: first.all}).others(); len(others) != 1 || others[0] != first {
		t.Errorf("the other connections of the host are %v", others)
	}
	if others := (&connection{host: "192.0.2.1", all: first.all}).others(); len(others) > 0 {
		t.Errorf("the other connections of another host are %d", len(others))
	}
	go get(t.Context())
	<-started
	conn.Close() //nolint:errcheck // as when an API server is killed
	second := <-ended
	if first != second {
		t.Fatal("two requests came over two connections")
	}
	eventually.Holds(t, "the end of the connection is recorded", func() bool { return !second.isOpen() })
}
