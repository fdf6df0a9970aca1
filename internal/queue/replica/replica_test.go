package replica

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// TestReadersHaveTheNewestPlan: a reader has the whole newest plan after each request,
// whether it got all of it or only the changes.
func TestReadersHaveTheNewestPlan(t *testing.T) {
	at := time.Unix(1000, 0)
	plans := []map[int64]control.Planned{
		{},
		{1: {Reason: "Priority", Priority: 7}, 2: {Start: at, Nodes: []string{"n1", "n2"}, Reason: "Resources", Priority: 9}},
		{1: {Reason: "Priority", Priority: 8}, 2: {Start: at, Nodes: []string{"n1", "n2"}, Reason: "Resources", Priority: 9}},
		{2: {Start: at, Nodes: []string{"n1"}, Reason: "Resources", Priority: 9}, 3: {Priority: 1}},
		{1: {Reason: "Priority", Priority: 8}},
	}
	var serial uint64
	var newest map[int64]control.Planned
	f := &Feed{Plan: func() (map[int64]control.Planned, uint64) { return newest, serial }}
	ask := func(k *knownPlan) *knownPlan {
		s := &state{}
		f.fill(s, k.epoch, k.serial)
		return k.with(s, at)
	}
	same := func(a, b map[int64]control.Planned) bool {
		return maps.EqualFunc(a, b, func(x, y control.Planned) bool { return same(&x, &y) })
	}
	always, sometimes := &knownPlan{}, &knownPlan{}
	for i, p := range plans {
		newest, serial = p, serial+1
		always = ask(always)
		if !same(always.jobs, p) {
			t.Errorf("plan %d: %v", i, always.jobs)
		}
		if i%2 == 1 {
			continue
		}
		if sometimes = ask(sometimes); !same(sometimes.jobs, p) {
			t.Errorf("plan %d, requested now and then: %v", i, sometimes.jobs)
		}
		if late := ask(&knownPlan{epoch: "of another process", serial: 99}); !same(late.jobs, p) {
			t.Errorf("plan %d, requested for the first time: %v", i, late.jobs)
		}
	}
	if got := ask(always); len(got.jobs) != 1 {
		t.Errorf("nothing changed: %v", got.jobs)
	}
}

func TestFeedRefusesOthersThanPeers(t *testing.T) {
	f := &Feed{Cluster: fake.Cluster(interceptor.Funcs{}), Peer: func(*http.Request) error { return http.ErrNoCookie }}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, Path, nil))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("the response to another process is %d: %s", w.Code, w.Body)
	}
}
