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

// TestWatchNodes: the first event has all nodes, the next ones only those that are
// new, changed or deleted.
func TestWatchNodes(t *testing.T) {
	s := newServer(t)
	rows := []status.Node{{Name: "n1", State: "IDLE"}, {Name: "n2", State: "IDLE"}}
	s.setNodes(rows...)
	event := s.watchNodes(t, "anna")
	names := func(e *status.NodeEvent) (out []string) {
		for _, n := range e.Items {
			out = append(out, n.Name+" "+n.State)
		}
		return out
	}
	if e := event(); e.Type != status.EventSync || !slices.Equal(names(e), []string{"n1 IDLE", "n2 IDLE"}) {
		t.Fatalf("%+v", e)
	}
	s.setNodes(
		status.Node{Name: "n1", State: "IDLE"}, status.Node{Name: "n2", State: "MIXED"},
		status.Node{Name: "n3", State: "IDLE"},
	)
	fake.Feed(s.Cluster, fake.Job(1, "anna", fake.InState(v1alpha1.StateRunning))) // rows change with jobs or nodes
	if e := event(); e.Type != status.EventDiff || !slices.Equal(names(e), []string{"n2 MIXED", "n3 IDLE"}) ||
		e.Gone != nil {
		t.Errorf("%+v", e)
	}
	s.setNodes(status.Node{Name: "n2", State: "MIXED"}, status.Node{Name: "n3", State: "IDLE"})
	fake.Feed(s.Cluster, fake.Job(2, "anna", fake.InState(v1alpha1.StateRunning)))
	if e := event(); e.Type != status.EventDiff || e.Items != nil || !slices.Equal(e.Gone, []string{"n1"}) {
		t.Errorf("%+v", e)
	}
}

func (s *server) setNodes(rows ...status.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = rows
}

// watchNodes opens a watch of nodes and returns a function that returns its next
// event.
func (s *server) watchNodes(t *testing.T, user string) func() *status.NodeEvent {
	t.Helper()
	resp := s.open(t, user, "/nodes?watch=true")
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
