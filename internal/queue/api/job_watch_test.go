package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// watch opens a watch of jobs and returns a function that returns its next event,
// or nil at its end.
func (s *server) watch(t *testing.T, user, query string) (code int, event func() *status.JobEvent) {
	t.Helper()
	resp := s.open(t, user, "/jobs?watch=true&"+query)
	lines := bufio.NewReader(resp.Body)
	return resp.StatusCode, func() *status.JobEvent {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		e := new(status.JobEvent)
		if err := json.Unmarshal(line, e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		return e
	}
}

// open sends a request whose response does not end.
func (s *server) open(t *testing.T, user, path string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL+wire.QueueRoot+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", user)
	tr := s.http.Client().Transport.(*http.Transport).Clone()
	tr.TLSClientConfig.Certificates = []tls.Certificate{*s.proxy}
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func eventIDs(e *status.JobEvent) []int64 {
	var out []int64
	for _, j := range e.Items {
		out = append(out, j.ID)
	}
	return out
}

func TestWatch(t *testing.T) {
	s := newServer(t)
	fake.Feed(s.Cluster, fake.Job(1, "anna", fake.InState("")), fake.Job(2, "ben", fake.InState("")))
	code, event := s.watch(t, "anna", "fields=id,state")
	if e := event(); code != 200 || e.Type != status.EventSync || !slices.Equal(eventIDs(e), []int64{1, 2}) ||
		e.Items[0].State != "PENDING" ||
		e.Items[0].User != "" {
		t.Fatalf("%d %+v", code, e)
	}
	fake.Feed(s.Cluster, fake.Job(1, "anna", fake.InState(v1alpha1.StateRunning)))
	if e := event(); e.Type != status.EventDiff || !slices.Equal(eventIDs(e), []int64{1}) ||
		e.Items[0].State != "RUNNING" {
		t.Errorf("%+v", e)
	}
	fake.Feed(s.Cluster, fake.Job(1, "anna", fake.InState(v1alpha1.StateCompleted)))
	if e := event(); len(e.Items) != 0 || !slices.Equal(e.Gone, []int64{1}) {
		t.Errorf("%+v", e)
	}
	// A watch ends when it shows jobs that have become private.
	private := fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"jobs"}})
	fake.Feed(s.Cluster, private, fake.Job(3, "ben", fake.InState("")))
	for e := event(); e != nil; e = event() {
		if len(e.Items) > 0 {
			t.Errorf("%+v", e)
		}
	}
	_, event = s.watch(t, "anna", "")
	if e := event(); len(e.Items) != 0 {
		t.Errorf("ben's jobs are shown: %+v", e)
	}
}

// TestWatchOfALongQueue: a long queue is a few events of complete rows, however many parts
// they are encoded in, and only the last one has a revision.
func TestWatchOfALongQueue(t *testing.T) {
	s := newServer(t)
	const jobs = 2500
	for id := range int64(jobs) {
		fake.Feed(s.Cluster, fake.Job(id+1, "anna", fake.InState("")))
	}
	for _, query := range []string{"", "fields=id"} {
		_, event := s.watch(t, "anna", query)
		next := int64(1)
		for _, want := range []struct {
			kind string
			rows int
			last bool
		}{{status.EventSync, 2000, false}, {status.EventMore, 500, true}} {
			e := event()
			if e == nil || e.Type != want.kind || len(e.Items) != want.rows || (e.Revision != "") != want.last {
				t.Fatalf("%q: %+v, want %+v", query, e, want)
			}
			for _, id := range eventIDs(e) {
				if id != next {
					t.Fatalf("%q: job %d in the place of job %d", query, id, next)
				}
				next++
			}
		}
	}
}

// TestWatchFlood: a user has a limited number of watches, and other users can still
// watch.
func TestWatchFlood(t *testing.T) {
	s := newServer(t)
	refused := 0
	for range 40 {
		if code, _ := s.watch(t, "anna", ""); code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 40-32 {
		t.Errorf("%d of 40 watches were refused", refused)
	}
	if code, _ := s.watch(t, "ben", ""); code != http.StatusOK {
		t.Errorf("ben: %d", code)
	}
}
