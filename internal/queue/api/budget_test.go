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

// allocated is how many bytes a function allocates, those of others meanwhile
// included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// ceiling is far above what a request of some kilobytes needs, and far below
// what one range of it would take if it were expanded.
const ceiling = 8 << 20

// TestRangesOfQueriesAreNotExpanded sends the widest ranges that can be written.
func TestRangesOfQueriesAreNotExpanded(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", state(v1alpha1.StateRunning))
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
		got := allocated(func() { code = h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+path, nil, nil) })
		if got > ceiling || code == http.StatusInternalServerError {
			t.Errorf("%s: answer %d, %d bytes allocated", name, code, got)
		}
	}
	for _, op := range []status.Operation{
		{Verb: status.OpCancel, Jobs: ids},
		{Verb: status.OpHold, Jobs: ids},
		{Verb: status.OpCancel, Jobs: []string{"1_[0-3999999].0"}},
		{Verb: status.OpCancel, Nodes: nodes},
	} {
		got := allocated(func() { h.ask(t, h.proxy, "ben", "POST", wire.QueueRoot+"/operations", op, nil) })
		if got > ceiling {
			t.Errorf("%s of %.20q: %d bytes allocated", op.Verb, op.Jobs, got)
		}
	}
}

// TestQueriesHaveABudget sends more than a query may have.
func TestQueriesHaveABudget(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	for name, query := range map[string]string{
		"bytes":          "name=" + strings.Repeat("x", 300<<10),
		"values":         "id=" + strings.Repeat("1,", 30_000),
		"escaped values": "id=" + strings.Repeat("1%2c", 30_000),
		"parameters":     strings.Repeat("id=1&", 30_000),
		"brackets":       "nodes=" + url.QueryEscape(strings.Repeat("n[1],", 2000)),
	} {
		for _, path := range []string{"/jobs?", "/steps?"} {
			if code := h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+path+query, nil, nil); code != http.StatusBadRequest {
				t.Errorf("%s%s: %d", path, name, code)
			}
		}
	}
	if code := h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+"/jobs?id="+strings.Repeat("1,", 10_000), nil, nil); code != http.StatusOK {
		t.Errorf("10,000 values: %d", code)
	}
}

// TestOnlyOwnersHaveValuesParsed updates a job of anna's with a value that takes
// long to parse.
func TestOnlyOwnersHaveValuesParsed(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	terms := make([]string, 200_000)
	for i := range terms {
		terms[i] = fmt.Sprintf("afterany:%d", i+2)
	}
	op := status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"Dependency": strings.Join(terms, ",")}}
	for user, jobs := range map[string][]string{"ben": {"1"}, "stranger": {"1"}, "anna": {"2"}} {
		op.Jobs = jobs
		var result status.OperationResult
		got := allocated(func() {
			if code := h.ask(t, h.proxy, user, "POST", wire.QueueRoot+"/operations", op, &result); code != http.StatusOK {
				t.Errorf("%s: %d", user, code)
			}
		})
		if len(result.Items) != 1 || result.Items[0].Error == "" || got > 5*ceiling {
			t.Errorf("%s: %+v, %d bytes allocated", user, result.Items, got)
		}
	}
	// A short value is judged first, as scontrol does, whoever the job belongs to.
	op = status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"TimeLimit": "x"}}
	var result status.OperationResult
	h.ask(t, h.proxy, "ben", "POST", wire.QueueRoot+"/operations", op, &result)
	if len(result.Items) != 1 || !strings.Contains(result.Items[0].Error, "TimeLimit") {
		t.Errorf("a wrong value: %+v", result.Items)
	}
}

// TestPrivateDataAll hides everything that PrivateData can hide.
func TestPrivateDataAll(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"all"}}))
	for _, path := range []string{"/nodes", "/partitions"} {
		if code := h.ask(t, h.proxy, "ben", "GET", wire.QueueRoot+path, nil, nil); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	var list status.JobList
	if h.ask(t, h.proxy, "ben", "GET", wire.QueueRoot+"/jobs", nil, &list); len(list.Items) != 0 {
		t.Errorf("ben sees %d jobs", len(list.Items))
	}
}

// TestOperationsOfManyNamesAndFilters sends an operation that lists many jobs and
// many names that they must have: the filter is made ready once, not for each job.
func TestOperationsOfManyNamesAndFilters(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	op := status.Operation{Verb: status.OpCancel}
	for i := range 30_000 {
		op.Jobs = append(op.Jobs, "2")
		op.Names = append(op.Names, fmt.Sprintf("name%d", i))
	}
	var code int
	got := allocated(func() { code = h.ask(t, h.proxy, "ben", "POST", wire.QueueRoot+"/operations", op, nil) })
	if code != http.StatusOK || got > 256<<20 {
		t.Errorf("answer %d, %d MiB allocated", code, got>>20)
	}
}
