package api_test

import (
	"bufio"
	"encoding/json"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// TestWatchNodes: all nodes come first, then those that are new, changed or
// gone, and nothing of the others.
func TestWatchNodes(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	rows := []status.Node{{Name: "n1", State: "IDLE"}, {Name: "n2", State: "IDLE"}}
	h.setNodes(rows...)
	event := h.watchNodes(t, "anna")
	names := func(e *status.NodeEvent) (out []string) {
		for _, n := range e.Items {
			out = append(out, n.Name+" "+n.State)
		}
		return out
	}
	if e := event(); e.Type != status.EventSync || !slices.Equal(names(e), []string{"n1 IDLE", "n2 IDLE"}) {
		t.Fatalf("%+v", e)
	}
	h.setNodes(status.Node{Name: "n1", State: "IDLE"}, status.Node{Name: "n2", State: "MIXED"}, status.Node{Name: "n3", State: "IDLE"})
	fake.Feed(h.Cluster, queued(1, "anna", v1alpha1.StateRunning)) // what changes nodes changes jobs or nodes
	if e := event(); e.Type != status.EventDiff || !slices.Equal(names(e), []string{"n2 MIXED", "n3 IDLE"}) || e.Gone != nil {
		t.Errorf("%+v", e)
	}
	h.setNodes(status.Node{Name: "n2", State: "MIXED"}, status.Node{Name: "n3", State: "IDLE"})
	fake.Feed(h.Cluster, queued(2, "anna", v1alpha1.StateRunning))
	if e := event(); e.Type != status.EventDiff || e.Items != nil || !slices.Equal(e.Gone, []string{"n1"}) {
		t.Errorf("%+v", e)
	}
}

func (h *house) setNodes(rows ...status.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes = rows
}

// watchNodes opens a watch and returns a function that reads its next event.
func (h *house) watchNodes(t *testing.T, user string) func() *status.NodeEvent {
	t.Helper()
	resp := h.open(t, user, "/nodes?watch=true")
	lines := bufio.NewReader(resp.Body)
	return func() *status.NodeEvent {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		e := new(status.NodeEvent)
		if err := json.Unmarshal(line, e); err != nil {
			t.Fatal(err)
		}
		return e
	}
}
