package table

import (
	"slices"
	"time"
)

// promise is how long a place is kept for a job that was admitted and has no
// row yet. It has one after milliseconds, unless the API server did not store
// it after all (a quota, another webhook's no). As long are objects remembered:
// a client whose answer was lost sends the same one again for that time.
const promise = 30 * time.Second

// Place is room in the queue for jobs of one user that are about to be stored.
type Place struct {
	// Object is "namespace/name" of what is submitted; whoever sends it again
	// takes no second place. "": not known.
	Object             string
	User, Account, QOS string
	Jobs               int // tasks of an array count each
	// Bytes are those that the job takes where it is stored (BatchJob.StoredBytes).
	Bytes int64

	id    int64
	until time.Time
	gone  bool
	// stored: the job has its row.
	stored bool
}

// Room tells whether there is room for a place: all is how many jobs there are
// in the queue, finished ones included, active how many of a group that are
// not, bytes what the jobs of the place's user take where they are stored, of finished
// jobs too. Tasks of an array count each, and so do jobs that have places.
type Room func(all int, active func(Key) int, bytes int64) error

// places are those kept, oldest first. The table's lock guards them.
type places struct {
	line     []*Place
	byID     map[int64]*Place
	byObject map[string][]*Place
}

// Reserve keeps a place if room says that there is one: no other submission
// comes between the question and the answer, so a burst takes no more places
// than there are. The place is kept until the job has its row, p is given back
// or some seconds are over.
func (t *Table) Reserve(p *Place, room Room) error {
	t.remakeTouched()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.places.line) > 0 && now.After(t.places.line[0].until) {
		old := t.places.line[0]
		t.leave(old)
		t.places.forget(old)
		t.places.line = t.places.line[1:]
	}
	if err := room(t.size, func(k Key) int { return t.active[k] }, t.bytes[p.User]); err != nil {
		return err
	}
	p.until = now.Add(promise)
	t.places.line = append(t.places.line, p)
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

// forget drops one place of an object, which may have newer ones.
func (l *places) forget(p *Place) {
	left := slices.DeleteFunc(l.byObject[p.Object], func(other *Place) bool { return other == p })
	if l.byObject[p.Object] = left; len(left) == 0 {
		delete(l.byObject, p.Object)
	}
}

// Resent tells whether the object was stored a moment ago and is sent again.
// If it has only places, they are given back: it will ask for new ones.
func (t *Table) Resent(object string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.places.byObject[object] {
		if p.stored {
			return true
		}
		t.leave(p)
	}
	delete(t.places.byObject, object)
	return false
}

// Take says which job the place is for.
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

// GiveBack ends the promise: the job will not be stored.
func (t *Table) GiveBack(p *Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(p)
}

// leave takes a place off the counts, once. The caller holds the lock.
func (t *Table) leave(p *Place) {
	if p.gone {
		return
	}
	p.gone = true
	delete(t.places.byID, p.id)
	t.size -= p.Jobs
	t.countGroups(p.User, p.Account, p.QOS, -p.Jobs)
	t.countBytes(p.User, -p.Bytes)
}

// arrived gives the place back to the job that has its row now. The caller
// holds the lock.
func (t *Table) arrived(id int64) {
	t.coming.arrived(id)
	if p := t.places.byID[id]; p != nil {
		p.stored = true
		t.leave(p)
	}
}

// Stored returns how many bytes the user's jobs take, places included, and how
// many of them the job with that id takes; 0 where there is none.
func (t *Table) Stored(user string, id int64) (all, job int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, ok := t.find(id); ok {
		job = t.rows[at].Bytes
	}
	return t.bytes[user], job
}
