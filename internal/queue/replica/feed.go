// Package replica lets processes without the lease (readers) serve requests that only
// read. A reader watches the API server as the leader does. It requests from the leader
// the plan, which no object has, and the versions that the leader's stores have reached.
// Feed is the leader's side of that, Leader the reader's.
package replica

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/control"
)

// Path is the path of the leader's state, which readers request.
const Path = "/replica/v1/state"

// state is the body of the response.
type state struct {
	// Versions are the versions that the leader's stores have reached.
	Versions versions `json:"versions"`
	// Epoch and Serial identify the plan. A reader sends them with its next request,
	// and the leader responds with the changes since. Whole means that Plan is the
	// whole plan.
	Epoch  string  `json:"epoch,omitempty"`
	Serial uint64  `json:"serial,omitempty"`
	Whole  bool    `json:"whole,omitempty"`
	Plan   []entry `json:"plan,omitempty"`
	Gone   []int64 `json:"gone,omitempty"`
}

// versions are the resource versions that the stores have reached, by kind.
type versions struct {
	Jobs         uint64 `json:"jobs"`
	Nodes        uint64 `json:"nodes"`
	Partitions   uint64 `json:"partitions"`
	Reservations uint64 `json:"reservations"`
	Users        uint64 `json:"users"`
	Accounts     uint64 `json:"accounts"`
	QOS          uint64 `json:"qos"`
	Settings     uint64 `json:"settings"`
}

func versionsOf(c *control.Cluster) versions {
	return versions{
		Jobs: c.Jobs.Version(), Nodes: c.Nodes.Version(), Partitions: c.Partitions.Version(),
		Reservations: c.Reservations.Version(), Users: c.Users.Version(), Accounts: c.Accounts.Version(),
		QOS: c.QOS.Version(), Settings: c.Settings.Version(),
	}
}

// entry is the part of a plan about one job. Its JSON names are short, because there are
// many entries.
type entry struct {
	ID       int64    `json:"i"`
	Priority int64    `json:"p"`
	Start    int64    `json:"s,omitempty"` // Unix seconds; 0: none
	Reason   string   `json:"r,omitempty"`
	Nodes    []string `json:"n,omitempty"`
	NodeCPUs int32    `json:"c,omitempty"`
	Outcomes string   `json:"o,omitempty"`
}

func entryOf(id int64, p *control.Planned) entry {
	e := entry{
		ID: id, Priority: p.Priority, Reason: p.Reason, Nodes: p.Nodes, NodeCPUs: p.NodeCPUs, Outcomes: p.Outcomes,
	}
	if !p.Start.IsZero() {
		e.Start = p.Start.Unix()
	}
	return e
}

func (e *entry) planned() control.Planned {
	p := control.Planned{
		Priority: e.Priority, Reason: e.Reason, Nodes: e.Nodes, NodeCPUs: e.NodeCPUs, Outcomes: e.Outcomes,
	}
	if e.Start != 0 {
		p.Start = time.Unix(e.Start, 0)
	}
	return p
}

// Feed serves GET Path in the process that leads. Cluster, Plan and Peer must be set. Safe
// for concurrent use.
type Feed struct {
	Cluster *control.Cluster
	// Plan returns the newest plan and its number, which increases from plan to plan.
	// The map does not change.
	Plan func() (map[int64]control.Planned, uint64)
	// Settled returns when the stores have every job that was admitted before the call;
	// nil: the feed does not wait.
	Settled func(context.Context)
	// Peer refuses requests that are not from another API role.
	Peer func(*http.Request) error

	mu      sync.Mutex
	epoch   string
	serial  uint64
	last    map[int64]control.Planned
	changed map[int64]uint64 // job -> number of the first plan with its present entry
	gone    map[int64]uint64 // job -> number of the first plan without it
}

// maxGone bounds gone. Beyond it, a new epoch begins, and every reader gets the whole plan
// once.
const maxGone = 1 << 16

// ServeHTTP responds with a state. With ?plan=yes it includes the plan: the changes since
// ?epoch= and ?serial=, or the whole plan if the changes are not known.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := f.Peer(r); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if f.Settled != nil {
		f.Settled(r.Context())
	}
	s := state{Versions: versionsOf(f.Cluster)}
	if q := r.URL.Query(); q.Get("plan") != "" {
		since, err := strconv.ParseUint(q.Get("serial"), 10, 64)
		if err != nil {
			since = 0
		}
		f.fill(&s, q.Get("epoch"), since)
	}
	body, err := json.Marshal(&s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a reader that is gone sends the request again
}

// fill adds the newest plan, or the changes to it since the plan with that epoch and number.
func (f *Feed) fill(s *state, epoch string, since uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.update()
	s.Epoch, s.Serial = f.epoch, f.serial
	s.Whole = epoch != f.epoch || since > f.serial
	for id, p := range f.last {
		if s.Whole || f.changed[id] > since {
			s.Plan = append(s.Plan, entryOf(id, &p))
		}
	}
	for id, at := range f.gone {
		if !s.Whole && at > since {
			s.Gone = append(s.Gone, id)
		}
	}
}

// update compares the newest plan with the one before and records the changes.
func (f *Feed) update() {
	plan, serial := f.Plan()
	if f.epoch == "" || len(f.gone) > maxGone {
		f.epoch = strconv.FormatInt(time.Now().UnixNano(), 36)
		f.last, f.changed, f.gone = nil, map[int64]uint64{}, map[int64]uint64{}
	} else if serial == f.serial {
		return
	}
	for id, p := range plan {
		if old, known := f.last[id]; !known || !same(&old, &p) {
			f.changed[id] = serial
		}
		delete(f.gone, id)
	}
	for id := range f.last {
		if _, still := plan[id]; !still {
			delete(f.changed, id)
			f.gone[id] = serial
		}
	}
	f.last, f.serial = plan, serial
}

// same reports whether the entries of two plans about a job are equal.
func same(a, b *control.Planned) bool {
	return a.Priority == b.Priority && a.Reason == b.Reason && a.Start.Equal(b.Start) &&
		a.NodeCPUs == b.NodeCPUs && a.Outcomes == b.Outcomes && slices.Equal(a.Nodes, b.Nodes)
}
