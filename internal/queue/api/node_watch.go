package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	// nodeInterval is the time between two comparisons of the nodes for a watch.
	nodeInterval = time.Second
	// nodeSettleTime is how long after a change the rows are computed again: they
	// come from the plan that follows the change.
	nodeSettleTime = 5 * time.Second
)

// nodeFeed encodes the rows of the nodes once for all watches, and only while
// something changes. Safe for concurrent use.
type nodeFeed struct {
	view    func() []status.Node
	changed atomic.Int64 // when anything changed that rows are made from, Unix nanoseconds

	mu   sync.Mutex
	at   time.Time // when rows was computed
	rows []nodeRow
}

// nodeRow is the row of a node as JSON.
type nodeRow struct {
	name string
	json []byte
}

// newNodeFeed returns a feed that the stores of c notify of changes.
func newNodeFeed(view func() []status.Node, c *control.Cluster) *nodeFeed {
	f := &nodeFeed{view: view}
	c.Jobs.Subscribe(func(_, _ *v1alpha1.BatchJob) { f.noteChange() })
	c.Nodes.Subscribe(func(_, _ *corev1.Node) { f.noteChange() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { f.noteChange() })
	c.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { f.noteChange() })
	return f
}

func (f *nodeFeed) noteChange() { f.changed.Store(time.Now().UnixNano()) }

// current returns the rows as they are now, or as they were if nothing has changed
// since. The slice is shared: nobody may change it.
func (f *nodeFeed) current() []nodeRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.rows != nil && f.isFresh(now) {
		return f.rows
	}
	nodes := f.view()
	f.rows, f.at = make([]nodeRow, 0, len(nodes)), now
	for i := range nodes {
		if b, err := json.Marshal(&nodes[i]); err == nil { // a row of plain fields is always encoded
			f.rows = append(f.rows, nodeRow{nodes[i].Name, b})
		}
	}
	return f.rows
}

// isFresh reports whether the rows need not be computed again. The caller holds mu.
func (f *nodeFeed) isFresh(now time.Time) bool {
	age := now.Sub(f.at)
	if age < nodeInterval/2 {
		return true
	}
	settled := now.Sub(time.Unix(0, f.changed.Load())) >= nodeSettleTime
	return settled && age < markInterval
}

// watchNodes serves GET nodes?watch=true: events of type status.NodeEvent, one a
// line.
func (a *API) watchNodes(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), watchLifetime)
	defer cancel()
	watch := &nodeWatch{stream: response.NewStream(w), now: a.Now}
	tick := time.NewTicker(nodeInterval)
	defer tick.Stop()
	for watch.sendChanges(a.nodeFeed.current()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// nodeWatch is one watch of nodes.
type nodeWatch struct {
	stream response.Stream
	now    func() time.Time
	sent   map[string][]byte // the client's rows by name; nil: it has none yet
	last   time.Time         // when the last event was sent
}

// sendChanges sends the difference between the rows and those that the client has.
// It returns false if the client is gone.
func (x *nodeWatch) sendChanges(rows []nodeRow) bool {
	e := nodeEvent{Type: status.EventDiff, Time: x.now().Unix()}
	if x.sent == nil {
		e.Type = status.EventSync
	}
	current := make(map[string][]byte, len(rows))
	for _, row := range rows {
		current[row.name] = row.json
		if sent, ok := x.sent[row.name]; !ok || !bytes.Equal(sent, row.json) {
			e.Items = append(e.Items, row.json)
		}
	}
	for name := range x.sent {
		if _, ok := current[name]; !ok {
			e.Gone = append(e.Gone, name)
		}
	}
	slices.Sort(e.Gone)
	x.sent = current
	if len(e.Items)+len(e.Gone) == 0 && e.Type == status.EventDiff {
		if time.Since(x.last) < markInterval {
			return true
		}
		e.Type = status.EventMark
	}
	x.last = time.Now()
	line, err := json.Marshal(&e)
	return err == nil && x.stream.Write(append(line, '\n'), true)
}

// nodeEvent is a status.NodeEvent whose rows are encoded already.
type nodeEvent struct {
	Type  string            `json:"type"`
	Time  int64             `json:"time"`
	Items []json.RawMessage `json:"items,omitempty"`
	Gone  []string          `json:"gone,omitempty"`
}
