package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	// nodePause is the time between two looks at the nodes while somebody
	// watches them.
	nodePause = time.Second
	// nodeSettle is how long after a change the rows are looked at: they come
	// from the plan that follows it.
	nodeSettle = 5 * time.Second
)

// nodeFeed makes the rows of the nodes once for all who watch them, and only
// while something changes. Safe for concurrent use.
type nodeFeed struct {
	view    func() []status.Node
	touched atomic.Int64 // when anything changed that rows are made of, Unix nanoseconds

	mu   sync.Mutex
	at   time.Time // when lines were made
	rows []nodeLine
}

// nodeLine is a node's row as JSON.
type nodeLine struct {
	name string
	json []byte
}

// newNodeFeed makes a feed; it is told of changes by the stores of c.
func newNodeFeed(view func() []status.Node, c *control.Cluster) *nodeFeed {
	f := &nodeFeed{view: view}
	c.Jobs.Subscribe(func(_, _ *v1alpha1.BatchJob) { f.touch() })
	c.Nodes.Subscribe(func(_, _ *corev1.Node) { f.touch() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { f.touch() })
	c.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { f.touch() })
	return f
}

func (f *nodeFeed) touch() { f.touched.Store(time.Now().UnixNano()) }

// lines are the rows as they are now, or were when nothing has changed since.
// Nobody may change them.
func (f *nodeFeed) lines() []nodeLine {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	restless := now.Sub(time.Unix(0, f.touched.Load())) < nodeSettle
	if since := now.Sub(f.at); f.rows != nil && (since < nodePause/2 || !restless && since < heartbeat) {
		return f.rows
	}
	nodes := f.view()
	f.rows, f.at = make([]nodeLine, 0, len(nodes)), now
	for i := range nodes {
		if b, err := json.Marshal(&nodes[i]); err == nil { // plain fields: it cannot fail
			f.rows = append(f.rows, nodeLine{nodes[i].Name, b})
		}
	}
	return f.rows
}

// watchNodes answers GET nodes?watch=true: events of status.NodeEvent, one a
// line.
func (a *API) watchNodes(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), watchLife)
	defer cancel()
	x := &nodeWatch{stream: openStream(w), api: a}
	tick := time.NewTicker(nodePause)
	defer tick.Stop()
	for x.look(a.feed.lines()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// nodeWatch is what one who watches the nodes was told.
type nodeWatch struct {
	stream
	api  *API
	told map[string][]byte // rows by name; nil: nothing yet
	last time.Time         // of the last event
}

// look tells what is new; false: the client is gone.
func (x *nodeWatch) look(lines []nodeLine) bool {
	kind := status.EventDiff
	if x.told == nil {
		kind = status.EventSync
	}
	is := make(map[string][]byte, len(lines))
	var items []json.RawMessage
	for _, l := range lines {
		is[l.name] = l.json
		if was, ok := x.told[l.name]; !ok || !bytes.Equal(was, l.json) {
			items = append(items, l.json)
		}
	}
	var gone []string
	for name := range x.told {
		if _, ok := is[name]; !ok {
			gone = append(gone, name)
		}
	}
	x.told = is
	if len(items)+len(gone) == 0 && kind == status.EventDiff {
		if time.Since(x.last) < heartbeat {
			return true
		}
		kind = status.EventMark
	}
	x.last = time.Now()
	line, err := json.Marshal(struct {
		Type  string            `json:"type"`
		Time  int64             `json:"time"`
		Items []json.RawMessage `json:"items,omitempty"`
		Gone  []string          `json:"gone,omitempty"`
	}{kind, x.api.Now().Unix(), items, gone})
	return err == nil && x.write(append(line, '\n'), true)
}
