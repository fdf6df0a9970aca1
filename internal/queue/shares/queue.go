package shares

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue hands out a number of places, in turns among the users who wait, so
// that a user with one request waits for at most one request of each other
// user. The zero value has no places. Safe for concurrent use.
type Queue struct {
	// What is the name of a place in a refusal: "lists of the queue".
	What string
	// Places are held at the same time by everybody, PerUser by one user of
	// weight 1.
	Places, PerUser int
	// Waiting is how many requests of one user of weight 1 may wait; 0: who
	// finds no place is refused at once.
	Waiting int
	// Patience is how long a request waits.
	Patience time.Duration

	mu    sync.Mutex
	taken int
	users map[string]*line
	turns []string // users who wait, in the order in which they get places
}

// line is one user's part of a Queue.
type line struct {
	taken   int
	most    int // places that the user may hold
	waiting []*ticket
}

// ticket is one request that waits.
type ticket struct{ granted chan struct{} }

// Acquire waits for a place for the user; release gives it back, and may be
// called more than once. The error is a *Refusal, or that of ctx.
func (q *Queue) Acquire(ctx context.Context, user string, weight int) (release func(), err error) {
	t, err := q.enter(user, weight)
	if err != nil {
		return nil, err
	}
	if t != nil {
		if err := q.await(ctx, user, t); err != nil {
			return nil, err
		}
	}
	return sync.OnceFunc(func() { q.release(user) }), nil
}

// enter takes a place (the ticket is nil) or joins the line.
func (q *Queue) enter(user string, weight int) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users == nil {
		q.users = map[string]*line{}
	}
	l := q.users[user]
	if l == nil {
		l = &line{}
		q.users[user] = l
	}
	l.most = q.PerUser * weight
	if q.taken < q.Places && l.taken < l.most && len(l.waiting) == 0 {
		q.taken++
		l.taken++
		return nil, nil
	}
	if len(l.waiting) >= q.Waiting*weight {
		q.forget(user, l)
		if l.taken < l.most {
			return nil, &Refusal{What: q.What, After: 5 * time.Second}
		}
		return nil, &Refusal{What: q.What, Own: l.taken + len(l.waiting), After: time.Second}
	}
	t := &ticket{make(chan struct{})}
	if l.waiting = append(l.waiting, t); len(l.waiting) == 1 {
		q.turns = append(q.turns, user)
	}
	return t, nil
}

// await returns nil when the ticket's turn has come.
func (q *Queue) await(ctx context.Context, user string, t *ticket) error {
	late := time.NewTimer(q.Patience)
	defer late.Stop()
	var err error
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = &Refusal{What: q.What, After: 5 * time.Second}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.users[user]
	if l == nil || !slices.Contains(l.waiting, t) { // its turn came meanwhile
		q.back(user)
		return err
	}
	if l.waiting = slices.DeleteFunc(l.waiting, func(o *ticket) bool { return o == t }); len(l.waiting) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(u string) bool { return u == user })
	}
	q.forget(user, l)
	return err
}

func (q *Queue) release(user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.back(user)
}

// back gives a place back and hands out what is free. The caller holds mu.
func (q *Queue) back(user string) {
	l := q.users[user]
	q.taken--
	l.taken--
	q.grant()
	q.forget(user, l)
}

// grant gives free places to users in turns. The caller holds mu.
func (q *Queue) grant() {
	for q.taken < q.Places {
		at := slices.IndexFunc(q.turns, func(u string) bool { return q.users[u].taken < q.users[u].most })
		if at < 0 {
			return
		}
		user := q.turns[at]
		l := q.users[user]
		q.turns = slices.Delete(q.turns, at, at+1)
		close(l.waiting[0].granted)
		if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
			q.turns = append(q.turns, user)
		}
		q.taken++
		l.taken++
	}
}

// forget drops a user who neither holds a place nor waits. The caller holds mu.
func (q *Queue) forget(user string, l *line) {
	if l.taken == 0 && len(l.waiting) == 0 {
		delete(q.users, user)
	}
}
