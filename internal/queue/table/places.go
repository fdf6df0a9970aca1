package table

import (
	"slices"
	"time"
)

// placeTimeout is how long a place is reserved for a job that was admitted and has no row
// yet. Usually it has one after milliseconds, unless the API server did not store it
// after all (a quota, a refusal by another webhook). Objects are remembered for the
// same time: a client that lost the response sends the same object again within it.
const placeTimeout = 30 * time.Second

// Place is a place in the queue for jobs of one user that are about to be stored.
type Place struct {
	// Object is "namespace/name" of the submission. Sending the same object again
	// reserves no second place. "": not known.
	Object             string
	User, Account, QOS string
	Jobs               int // tasks of an array count each
	// Bytes is the stored size of the job (BatchJob.StoredBytes).
	Bytes int64

	id    int64
	until time.Time
	gone  bool
	// stored reports whether the job has its row.
	stored bool
}

// Room returns an error if there is no room for a place. all is the number of jobs in
// the queue, including final ones; active returns the number of jobs of a group that
// are not final; bytes is the stored size of the jobs of the place's user, including
// final ones. Each task of an array counts, and so do jobs with places.
type Room func(all int, active func(Key) int, bytes int64) error

// places are the reserved places, oldest first. The table's lock guards them.
type places struct {
	ordered  []*Place
	byID     map[int64]*Place
	byObject map[string][]*Place
}

// Reserve reserves a place if room allows it. Check and reservation are atomic, so many
// submissions at once cannot exceed the limits. The place stays reserved until the job
// has its row, until GiveBack, or for some seconds.
func (t *Table) Reserve(p *Place, room Room) error {
	t.rebuildTouched()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.places.ordered) > 0 && now.After(t.places.ordered[0].until) {
		old := t.places.ordered[0]
		t.releasePlace(old)
		t.places.forget(old)
		t.places.ordered = t.places.ordered[1:]
	}
	if err := room(t.size, func(k Key) int { return t.active[k] }, t.bytes[p.User]); err != nil {
		return err
	}
	p.until = now.Add(placeTimeout)
	t.places.ordered = append(t.places.ordered, p)
	if p.Object != "" {
		if t.places.byObject == nil {
			t.places.byObject = map[string][]*Place{}
		}
		t.places.byObject[p.Object] = append(t.places.byObject[p.Object], p)
	}
	t.size += p.Jobs
	t.countGroups(p.User, p.Account, p.QOS, p.Jobs)
	t.countBytes(p.User, p.Bytes)
	return nil
}

// forget removes one place of an object, which may have newer ones.
func (l *places) forget(p *Place) {
	left := slices.DeleteFunc(l.byObject[p.Object], func(other *Place) bool { return other == p })
	if l.byObject[p.Object] = left; len(left) == 0 {
		delete(l.byObject, p.Object)
	}
}

// Resent reports whether the object was stored a moment ago and is sent again. If it
// has only places, they are released: the caller will reserve new ones.
func (t *Table) Resent(object string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.places.byObject[object] {
		if p.stored {
			return true
		}
		t.releasePlace(p)
	}
	delete(t.places.byObject, object)
	return false
}

// Take sets the id of the job that the place is for.
func (t *Table) Take(p *Place, id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.gone {
		return
	}
	if t.places.byID == nil {
		t.places.byID = map[int64]*Place{}
	}
	p.id = id
	t.places.byID[id] = p
}

// GiveBack releases the place: the job will not be stored.
func (t *Table) GiveBack(p *Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releasePlace(p)
}

// releasePlace subtracts a place from the counts, once. The caller holds the lock.
func (t *Table) releasePlace(p *Place) {
	if p.gone {
		return
	}
	p.gone = true
	delete(t.places.byID, p.id)
	t.size -= p.Jobs
	t.countGroups(p.User, p.Account, p.QOS, -p.Jobs)
	t.countBytes(p.User, -p.Bytes)
}

// arrived releases the place of the job, which now has its row. The caller holds the
// lock.
func (t *Table) arrived(id int64) {
	t.coming.arrived(id)
	if p := t.places.byID[id]; p != nil {
		p.stored = true
		t.releasePlace(p)
	}
}

// Stored returns the stored size of the user's jobs in bytes, including places, and the
// part of the job with that id, or 0.
func (t *Table) Stored(user string, id int64) (all, job int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, ok := t.find(id); ok {
		job = t.rows[at].Bytes
	}
	return t.bytes[user], job
}
