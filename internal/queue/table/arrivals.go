package table

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Patience limits how long a reader waits for jobs that were admitted before its
// request. Their events are on their way, unless the API server did not store them
// after all (a retry found its own object, or a quota was exceeded).
const Patience = time.Second

// arrivals are the jobs that were admitted and have no row yet. A reader who has just
// submitted a job must find it, because programs consider a job that is not listed as
// finished.
type arrivals struct {
	mu      sync.Mutex
	due     map[int64]arrival
	changed chan struct{} // closed when a job has arrived
}

type arrival struct {
	user   string
	leader int64 // of the heterogeneous job whose component it is; else its own id
	at     time.Time
}

// Expect announces a job that was admitted and is about to be stored, and the
// further components of a heterogeneous job, which have the ids after it.
func (t *Table) Expect(id int64, components int, user string) {
	a := &t.coming
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if known, ok := a.due[id]; ok && known.leader != id {
		return // a component that was announced with its job
	}
	for old, x := range a.due {
		if now.Sub(x.at) > Patience {
			delete(a.due, old)
		}
	}
	if a.due == nil {
		a.due = map[int64]arrival{}
	}
	for i := range int64(1 + components) {
		a.due[id+i] = arrival{user, id, now}
	}
}

// arrived removes the job from the list.
func (a *arrivals) arrived(id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.due[id]; !ok {
		return
	}
	delete(a.due, id)
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// pending returns a channel that is closed when a job arrives, while jobs that the
// query may match, admitted before asked, have not arrived; nil: there are none.
func (a *arrivals) pending(q *Query, asked time.Time) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, x := range a.due {
		unasked := len(q.IDs) > 0 && !slices.Contains(q.IDs, id) && !slices.Contains(q.IDs, x.leader)
		if unasked || x.at.After(asked) || time.Since(x.at) > Patience ||
			len(q.Users) > 0 && !slices.Contains(q.Users, x.user) {
			continue
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		return a.changed
	}
	return nil
}

// Await returns when every job that was admitted before the call, and that q may match,
// has a row; at the latest after Patience, or when ctx is done.
func (t *Table) Await(ctx context.Context, q Query) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		changed := t.coming.pending(&q, asked)
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
