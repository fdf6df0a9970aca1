package table

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Patience bounds how long a reader waits for jobs that were admitted before
// it asked: their events are on their way, unless the API server did not
// store them after all (a retry met its own object, a quota).
const Patience = time.Second

// arrivals are the jobs that were admitted and have no row yet. A reader who
// submitted a moment ago must find the job: programs take a job that is not
// listed for finished.
type arrivals struct {
	mu      sync.Mutex
	due     map[int64]arrival
	changed chan struct{} // closed when a job has arrived
}

type arrival struct {
	user string
	at   time.Time
}

// Expect tells the table that the job was admitted and is about to be stored.
func (t *Table) Expect(id int64, user string) {
	a := &t.coming
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for old, x := range a.due {
		if now.Sub(x.at) > Patience {
			delete(a.due, old)
		}
	}
	if a.due == nil {
		a.due = map[int64]arrival{}
	}
	a.due[id] = arrival{user, now}
}

// arrived takes the job off the list.
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

// pending returns a channel to wait on while jobs that the query may mean,
// admitted before asked, have not arrived; nil: there are none.
func (a *arrivals) pending(q *Query, asked time.Time) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, x := range a.due {
		if x.at.After(asked) || time.Since(x.at) > Patience ||
			len(q.IDs) > 0 && !slices.Contains(q.IDs, id) || len(q.Users) > 0 && !slices.Contains(q.Users, x.user) {
			continue
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		return a.changed
	}
	return nil
}

// Await returns when every job that was admitted before the call, and that q
// may mean, has its row; after Patience at the latest, or when ctx is done.
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
