package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// server is a queue API over HTTP/2, as API servers speak to it, with the users anna
// and ben and the operator opal.
type server struct {
	*control.Cluster
	http   *httptest.Server
	proxy  *tls.Certificate // of the front proxy
	agents fake.Agents
	table  *table.Table

	mu    sync.Mutex
	nodes []status.Node
	// viewing, if set, is called when the nodes are listed.
	viewing func()
}

func (s *server) NodesView() []status.Node {
	if s.viewing != nil {
		s.viewing()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.nodes)
}

func (s *server) Shows(time.Time) bool { return true }

func (s *server) TopologyView() *status.Topology { return &status.Topology{Type: "tree"} }

func (s *server) PartitionsView() []status.Partition { return []status.Partition{{Name: "main"}} }

// agentsOf are the agents of the server's jobs, none of which can be reached.
type agentsOf struct{ *fake.Agents }

var errNoAgent = errors.New("no agent")

func (agentsOf) Dial(context.Context, *v1alpha1.BatchJob) (io.ReadWriteCloser, error) {
	return nil, errNoAgent
}

func (agentsOf) Describe(*v1alpha1.BatchJob) (*wire.Welcome, error) { return nil, errNoAgent }

func newServer(t *testing.T) *server {
	return newServerWith(t, func(s *server) api.Pool { return s })
}

func newServerWith(t *testing.T, pool func(*server) api.Pool) *server {
	t.Helper()
	authority := fake.NewAuthority(t)
	s := &server{
		Cluster: fake.Cluster(fake.AssignUIDs, authority.ConfigMap()),
		proxy:   authority.Client(t, fake.FrontProxyName),
		nodes:   []status.Node{{Name: "n1", State: "IDLE", Partitions: []string{"main"}}},
	}
	dir := directory.New(s.Cluster, nil)
	s.table = table.New(s.Cluster, dir, nil)
	mux := http.NewServeMux()
	api.New(api.Options{
		Directory: dir, Table: s.table, Pool: pool(s), Now: time.Now, Agents: agentsOf{&s.agents},
		Operations: &operations.Service{
			Cluster: s.Cluster, Directory: dir, Table: s.table, Nodes: s.NodesView, Agents: &s.agents, Now: time.Now,
		},
		Proxy:        &frontproxy.Authenticator{Client: s.Client, Now: time.Now},
		RefusalDelay: time.Millisecond,
	}).Register(mux)
	s.http = httptest.NewUnstartedServer(mux)
	s.http.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	t.Cleanup(s.http.Close)
	opal := fake.User("opal", 1003)
	opal.Spec.AdminLevel = directory.LevelOperator
	fake.Feed(s.Cluster, fake.User("anna", 1001), fake.User("ben", 1002), opal)
	return s
}

// ask sends a request with a client certificate (nil: none) for a user.
func (s *server) ask(t *testing.T, cert *tls.Certificate, user, method, path string, in, out any) int {
	t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("X-Remote-User", user)
	}
	tr := s.http.Client().Transport.(*http.Transport).Clone()
	defer tr.CloseIdleConnections()
	if cert != nil {
		tr.TLSClientConfig.Certificates = []tls.Certificate{*cert}
	}
	resp, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil && resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode
}

func (s *server) add(t *testing.T, id int64, user string, change func(*v1alpha1.BatchJob)) {
	t.Helper()
	fake.AddJob(t, s.Cluster, id, user, change)
}

func TestPrivateData(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", nil)
	s.add(t, 2, "ben", nil)
	count := func(user, query string) int {
		var list status.JobList
		if code := s.ask(t, s.proxy, user, "GET", wire.QueueRoot+"/jobs"+query, nil, &list); code != 200 {
			t.Fatal(code)
		}
		return len(list.Items)
	}
	if n := count("anna", ""); n != 2 {
		t.Errorf("%d jobs", n)
	}
	fake.Feed(s.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"Jobs"}}))
	for _, c := range []struct {
		user, query string
		want        int
	}{
		{"anna", "", 1}, {"anna", "?user=ben", 0}, {"anna", "?id=2", 0}, {"anna", "?user=ben,anna", 1},
		{"stranger", "", 0}, {"opal", "", 2}, {"opal", "?user=ben", 1},
	} {
		if n := count(c.user, c.query); n != c.want {
			t.Errorf("%s %s: %d jobs, want %d", c.user, c.query, n, c.want)
		}
	}
}
