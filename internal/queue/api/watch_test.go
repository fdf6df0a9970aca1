package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// watch opens a watch and returns a function that reads its next event; nil
// is the end.
func (h *house) watch(t *testing.T, user, query string) (code int, event func() *status.JobEvent) {
	t.Helper()
	resp := h.open(t, user, "/jobs?watch=true&"+query)
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

// open begins to read an answer that does not end.
func (h *house) open(t *testing.T, user, path string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.server.URL+wire.QueueRoot+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", user)
	tr := h.server.Client().Transport.(*http.Transport).Clone()
	tr.TLSClientConfig.Certificates = []tls.Certificate{*h.proxy}
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

// queued is a BatchJob as a watch of the API server tells of it.
func queued(id int64, user, state string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Name, b.Namespace = "j-"+strconv.FormatInt(id, 10), "user-"+user
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main"}
	b.Status.State = state
	return b
}

func TestWatch(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	fake.Feed(h.Cluster, queued(1, "anna", ""), queued(2, "ben", ""))
	code, event := h.watch(t, "anna", "fields=id,state")
	if e := event(); code != 200 || e.Type != status.EventSync || !slices.Equal(eventIDs(e), []int64{1, 2}) || e.Items[0].State != "PENDING" || e.Items[0].User != "" {
		t.Fatalf("%d %+v", code, e)
	}
	fake.Feed(h.Cluster, queued(1, "anna", v1alpha1.StateRunning))
	if e := event(); e.Type != status.EventDiff || !slices.Equal(eventIDs(e), []int64{1}) || e.Items[0].State != "RUNNING" {
		t.Errorf("%+v", e)
	}
	fake.Feed(h.Cluster, queued(1, "anna", v1alpha1.StateCompleted))
	if e := event(); len(e.Items) != 0 || !slices.Equal(e.Gone, []int64{1}) {
		t.Errorf("%+v", e)
	}
	// When others' jobs become private, a watch that shows them ends.
	settings := &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{PrivateData: []string{"jobs"}}}
	settings.Name = v1alpha1.ClusterName
	fake.Feed(h.Cluster, settings, queued(3, "ben", ""))
	for e := event(); e != nil; e = event() {
		if len(e.Items) > 0 {
			t.Errorf("%+v", e)
		}
	}
	_, event = h.watch(t, "anna", "")
	if e := event(); len(e.Items) != 0 {
		t.Errorf("ben's jobs are shown: %+v", e)
	}
}

// A watch over HTTP/2 that has nothing to tell for longer than a client may
// take to read goes on.
func TestWatchOutlivesSilence(t *testing.T) {
	t.Cleanup(api.SetPatienceToSend(200 * time.Millisecond))
	h := newHouse(t, newAuthority(t))
	fake.Feed(h.Cluster, queued(1, "anna", ""))
	_, event := h.watch(t, "anna", "fields=id,state")
	if e := event(); e == nil || e.Type != status.EventSync {
		t.Fatalf("%+v", e)
	}
	time.Sleep(time.Second) // the silence
	fake.Feed(h.Cluster, queued(1, "anna", v1alpha1.StateRunning))
	if e := event(); e == nil || !slices.Equal(eventIDs(e), []int64{1}) {
		t.Errorf("%+v", e)
	}
}

// TestWatchFlood: one caller cannot take every place.
func TestWatchFlood(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	refused := false
	for range 40 {
		code, _ := h.watch(t, "anna", "")
		refused = refused || code == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("40 watches of one caller are open")
	}
	if code, _ := h.watch(t, "ben", ""); code != 200 {
		t.Error("nobody else may watch: ", code)
	}
}
