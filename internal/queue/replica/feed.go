// Package replica lets processes without the lease answer read requests. They follow
// the API server like the leader, and request from the leader what is in no object (the
// plan), and how far its stores are. Feed is the leader's side, Leader that of the
// others.
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

// Path is where a leader tells how far it is.
const Path = "/replica/v1/state"

// state is the answer.
type state struct {
	// Versions are how far the leader's stores have come.
	Versions versions `json:"versions"`
	// Epoch and Serial name the plan; asked again with them, the leader sends
	// what has changed since. Whole: Plan is everything.
	Epoch  string  `json:"epoch,omitempty"`
	Serial uint64  `json:"serial,omitempty"`
	Whole  bool    `json:"whole,omitempty"`
	Plan   []entry `json:"plan,omitempty"`
	Gone   []int64 `json:"gone,omitempty"`
}

// versions are resource versions by kind.
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

// entry is what a plan says of one job. Its names are short: there are many.
type entry struct {
	ID       int64    `json:"i"`
	Priority int64    `json:"p"`
	Start    int64    `json:"s,omitempty"` // Unix seconds; 0: none
	Reason   string   `json:"r,omitempty"`
	Nodes    []string `json:"n,omitempty"`
}

func entryOf(id int64, p *control.Planned) entry {
	e := entry{ID: id, Priority: p.Priority, Reason: p.Reason, Nodes: p.Nodes}
	if !p.Start.IsZero() {
		e.Start = p.Start.Unix()
	}
	return e
}

func (e *entry) planned() control.Planned {
	p := control.Planned{Priority: e.Priority, Reason: e.Reason, Nodes: e.Nodes}
	if e.Start != 0 {
		p.Start = time.Unix(e.Start, 0)
	}
	return p
}

// Feed answers GET Path in the process that leads. Cluster, Plan and Peer are
// needed. Safe for concurrent use.
type Feed struct {
	Cluster *control.Cluster
	// Plan is the newest plan and its number; the map is never changed.
	Plan func() (map[int64]control.Planned, uint64)
	// Settled returns when the stores hold what was admitted before the call;
	// nil: at once.
	Settled func(context.Context)
	// Peer refuses requests that are not from another API role.
	Peer func(*http.Request) error

	mu      sync.Mutex
	epoch   string
	serial  uint64
	last    map[int64]control.Planned
	changed map[int64]uint64 // job -> the plan that last said something else
	gone    map[int64]uint64 // job -> the plan that no longer knew it
}

// mostGone bounds what is remembered of jobs that wait no more: then all are
// sent the whole plan once.
const mostGone = 1 << 16

// ServeHTTP answers with a state; ?plan=yes asks for the plan, what has
// changed since ?epoch= and ?serial= where they are known.
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
	_, _ = w.Write(body) // a reader that is gone asks again
}

// fill adds what the newest plan says, as far as it is news.
func (f *Feed) fill(s *state, epoch string, since uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
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

// look compares the newest plan with the one last looked at.
func (f *Feed) look() {
	plan, serial := f.Plan()
	if f.epoch == "" || len(f.gone) > mostGone {
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

func same(a, b *control.Planned) bool {
	return a.Priority == b.Priority && a.Reason == b.Reason && a.Start.Equal(b.Start) && slices.Equal(a.Nodes, b.Nodes)
}
