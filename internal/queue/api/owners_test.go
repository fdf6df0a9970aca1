package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestOwnersThatAreGone: a job whose client has hung up is given up soon; one
// whose client was lost, with the connection to the API server or a reader
// between, or that nobody has come for since this process leads, is waited for.
func TestOwnersThatAreGone(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOwners(func() time.Time { return now })
	broken := new(link)
	broken.closed.Store(1)
	links := map[int64]*link{1: new(link), 2: broken, 3: nil, 4: new(link)}
	for id := int64(1); id <= 5; id++ {
		b := &v1alpha1.BatchJob{}
		b.Spec.JobID, b.Spec.Job.Batch.Client, b.Status.State = id, "srun", v1alpha1.StateRunning
		o.jobChanged(nil, b)
		if id <= 4 {
			o.hold(id, links[id])()
		}
	}
	back := o.hold(4, links[4]) // it comes back
	for _, tt := range []struct {
		after time.Duration
		want  []int64
	}{{hungUp, nil}, {time.Second, []int64{1}}, {forsaken, []int64{1, 2, 3, 5}}} {
		now = now.Add(tt.after)
		got := o.lost()
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("at %v: %v, want %v", now, got, tt.want)
		}
	}
	links[4].closed.Store(1) // the API server ends, and its clients with it
	back()
	now = now.Add(hungUp + time.Second)
	if slices.Contains(o.lost(), 4) {
		t.Error("a job is given up with its API server")
	}
}

// TestLinks: a request that a client over HTTP/2 gives up leaves its connection
// standing; the end of the connection is noticed.
func TestLinks(t *testing.T) {
	ended := make(chan *link, 2)
	began := make(chan struct{}, 2)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- (&API{Options: Options{Proxy: &FrontProxy{}}}).linkOf(r)
	}))
	FollowConnections(s.Config)
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
			io.Copy(io.Discard, resp.Body) //nolint:errcheck // it is cut
			resp.Body.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go get(ctx)
	<-began
	cancel()
	first := <-ended
	if !first.stands() {
		t.Error("the connection went with the request")
	}
	if besides := first.besides(); len(besides) > 0 {
		t.Errorf("%d connections beside the only one", len(besides))
	}
	if besides := (&link{host: first.host, all: first.all}).besides(); len(besides) != 1 || besides[0] != first {
		t.Errorf("beside another connection of the host stand %v", besides)
	}
	if besides := (&link{host: "192.0.2.1", all: first.all}).besides(); len(besides) > 0 {
		t.Errorf("another host has %d connections", len(besides))
	}
	go get(t.Context())
	<-began
	conn.Close() //nolint:errcheck // as a killed API server's
	second := <-ended
	if first != second {
		t.Fatal("two requests came over two connections")
	}
	deadline := time.Now().Add(10 * time.Second)
	for second.stands() {
		if time.Now().After(deadline) {
			t.Fatal("a closed connection is taken for one that stands")
		}
		time.Sleep(time.Millisecond)
	}
}
