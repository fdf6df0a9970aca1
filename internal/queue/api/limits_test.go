package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// allocated returns how many bytes f allocates, with those of other goroutines
// meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxAllocated is far above what a request of some kilobytes needs, and far below
// what one of its ranges would take if it were expanded.
const maxAllocated = 8 << 20

// TestRangesOfQueriesAreNotExpanded sends the widest ranges that can be written.
func TestRangesOfQueriesAreNotExpanded(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
	var ids, nodes []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("%d_[0-3999999]", i+1))
	}
	for i := range 50 {
		nodes = append(nodes, fmt.Sprintf("n%d[0-65535]", i))
	}
	for name, path := range map[string]string{
		"ids of jobs":    "/jobs?id=" + url.QueryEscape(strings.Join(ids, ",")),
		"nodes of jobs":  "/jobs?nodes=" + url.QueryEscape(strings.Join(nodes, ",")),
		"ids of steps":   "/steps?id=" + url.QueryEscape(strings.Join(ids, ",")),
		"nodes of steps": "/steps?nodes=" + url.QueryEscape(strings.Join(nodes, ",")),
		"a script":       "/scripts?id=" + url.QueryEscape(ids[0]),
	} {
		var code int
		got := allocated(func() { code = s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+path, nil, nil) })
		if got > maxAllocated || code == http.StatusInternalServerError {
			t.Errorf("%s: response %d, %d bytes allocated", name, code, got)
		}
	}
	for _, op := range []status.Operation{
		{Verb: status.OpCancel, Jobs: ids},
		{Verb: status.OpHold, Jobs: ids},
		{Verb: status.OpCancel, Jobs: []string{"1_[0-3999999].0"}},
		{Verb: status.OpCancel, Nodes: nodes},
	} {
		got := allocated(func() { s.ask(t, s.proxy, "ben", "POST", wire.QueueRoot+"/operations", op, nil) })
		if got > maxAllocated {
			t.Errorf("%s of %.20q: %d bytes allocated", op.Verb, op.Jobs, got)
		}
	}
}

// TestQueriesAreLimited sends longer queries than a URL may have.
func TestQueriesAreLimited(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", nil)
	for name, query := range map[string]string{
		"bytes":          "name=" + strings.Repeat("x", 300<<10),
		"values":         "id=" + strings.Repeat("1,", 30_000),
		"escaped values": "id=" + strings.Repeat("1%2c", 30_000),
		"parameters":     strings.Repeat("id=1&", 30_000),
		"brackets":       "nodes=" + url.QueryEscape(strings.Repeat("n[1],", 2000)),
	} {
		for _, path := range []string{"/jobs?", "/steps?"} {
			code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+path+query, nil, nil)
			if code != http.StatusBadRequest {
				t.Errorf("%s%s: %d", path, name, code)
			}
		}
	}
	path := wire.QueueRoot + "/jobs?id=" + strings.Repeat("1,", 10_000)
	if code := s.ask(t, s.proxy, "anna", "GET", path, nil, nil); code != http.StatusOK {
		t.Errorf("10,000 values: %d", code)
	}
}

// TestPrivateDataAll: PrivateData=all hides everything that it can hide.
func TestPrivateDataAll(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", nil)
	fake.Feed(s.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"all"}}))
	for _, path := range []string{"/nodes", "/partitions"} {
		if code := s.ask(t, s.proxy, "ben", "GET", wire.QueueRoot+path, nil, nil); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	var list status.JobList
	if s.ask(t, s.proxy, "ben", "GET", wire.QueueRoot+"/jobs", nil, &list); len(list.Items) != 0 {
		t.Errorf("ben sees %d jobs", len(list.Items))
	}
}
