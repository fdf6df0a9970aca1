package table

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// remembered is the number of changes that are kept for watchers. A watcher that lags
// further behind receives all rows again, so that many or slow watchers need no more
// memory.
const remembered = 1 << 14

// planPause is the minimum time between two comparisons of the plan for watchers. A
// plan may change every pending job, and watchers need not follow that to the
// millisecond.
const planPause = 2 * time.Second

// change is one entry of the history. old is nil for a new job, now for one that was
// removed; they are the same row if only the plan has changed.
type change struct {
	id       int64
	old, now *Row
}

// history has the last changes of the table, in a ring. Revision n is the state after n
// changes; change n leads to revision n+1. The table's lock guards it.
type history struct {
	epoch string // of this process: revisions of other processes are invalid
	count uint64
	ring  []change
	wake  chan struct{} // closed at the next change; nil: nobody waits
}

func (h *history) add(c change) {
	if len(h.ring) < remembered {
		h.ring = append(h.ring, c)
	} else {
		h.ring[h.count%remembered] = c
	}
	h.count++
	h.alert()
}

// alert wakes all that wait for a change.
func (h *history) alert() {
	if h.wake != nil {
		close(h.wake)
		h.wake = nil
	}
}

// since calls visit with every change after revision at, oldest first; ok is false if
// they are not kept any more.
func (h *history) since(at uint64, visit func(*change)) (ok bool) {
	if at > h.count || h.count-at > uint64(len(h.ring)) {
		return false
	}
	for n := at; n < h.count; n++ {
		visit(&h.ring[n%remembered])
	}
	return true
}

func (h *history) revision() string { return h.epoch + "-" + strconv.FormatUint(h.count, 10) }

// Watcher follows the rows that match a query. It stores no rows, only its position in
// the history. It must be used by one goroutine at a time.
type Watcher struct {
	t      *Table
	filter *filter
	at     uint64
	synced bool
	plans  bool // changes of the plan alone matter
}

// Changes are the changes that a Watcher returns.
type Changes struct {
	Sync     bool // Rows are all rows that match, and replace those returned before
	Rows     []*Row
	Gone     []int64
	Revision string
}

// Watch starts to follow q after the revision since (of Changes), or from the beginning
// if it is empty or not kept any more. With plans it also returns changes that only the
// newest plan makes to a pending job.
func (t *Table) Watch(q Query, since string, plans bool) *Watcher {
	w := &Watcher{t: t, filter: q.compile(), plans: plans}
	epoch, number, _ := strings.Cut(since, "-")
	if n, err := strconv.ParseUint(number, 10, 64); err == nil && epoch == t.past.epoch {
		w.at, w.synced = n, true
	}
	return w
}

// Next returns the changes since the last call, and waits until there are any. The
// first call of a Watcher that starts from the beginning returns at once. The error is
// that of ctx.
func (w *Watcher) Next(ctx context.Context) (Changes, error) {
	for {
		w.t.rebuild()
		got, changed := w.collect()
		if got.Sync || len(got.Rows)+len(got.Gone) > 0 {
			return got, nil
		}
		var tick <-chan time.Time
		if w.plans {
			tick = time.After(planPause)
		}
		select {
		case <-changed:
		case <-tick:
			w.t.notePlanChanges()
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// collect returns what has changed, and a channel that is closed at the next change.
func (w *Watcher) collect() (Changes, <-chan struct{}) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.past.wake == nil {
		t.past.wake = make(chan struct{})
	}
	out := Changes{Revision: t.past.revision()}
	first := map[int64]*change{}
	var order []int64
	known := w.synced && t.past.since(w.at, func(c *change) {
		if !w.filter.hasID(c.old) && !w.filter.hasID(c.now) || c.old == c.now && !w.plans {
			return
		}
		if first[c.id] == nil {
			first[c.id] = c
			order = append(order, c.id)
		}
	})
	w.at, w.synced = t.past.count, true
	if !known {
		out.Sync, out.Rows = true, w.all()
		return out, t.past.wake
	}
	for _, id := range order {
		if at, ok := t.find(id); ok && w.filter.pass(t.rows[at]) {
			out.Rows = append(out.Rows, t.rows[at])
		} else if old := first[id].old; old != nil && w.filter.pass(old) {
			out.Gone = append(out.Gone, id)
		}
	}
	slices.SortFunc(out.Rows, func(a, b *Row) int { return int(a.ID - b.ID) })
	return out, t.past.wake
}

// all returns the rows that match. The table is locked.
func (w *Watcher) all() []*Row {
	var out []*Row
	for _, r := range w.t.rows {
		if w.filter.pass(r) {
			out = append(out, r)
		}
	}
	return out
}

// plans is what was last reported about the plan.
type plans struct {
	mu         sync.Mutex
	seen       map[int64]control.Planned
	comparedAt time.Time
}

// notePlanChanges adds a change for every pending job for which the newest plan differs
// from the one compared last. It is called for all watchers together, and only once in
// a while. Priorities, which grow with every plan, do not count as changes.
func (t *Table) notePlanChanges() {
	if t.planner == nil {
		return
	}
	p := &t.plans
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.comparedAt) < planPause/2 {
		return
	}
	p.comparedAt = now
	seen := make(map[int64]control.Planned, len(p.seen))
	var moved []*Row
	for _, r := range t.Select(context.Background(), Query{States: []string{v1alpha1.StatePending}}) {
		plan, ok := t.planner.Planned(r.ID)
		if !ok {
			continue
		}
		seen[r.ID] = plan
		before, known := p.seen[r.ID]
		if !known || before.Reason != plan.Reason || !before.Start.Equal(plan.Start) ||
			!slices.Equal(before.Nodes, plan.Nodes) {
			moved = append(moved, r)
		}
	}
	p.seen = seen
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range moved {
		t.past.add(change{r.ID, r, r})
	}
}
