package shares

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue grants a number of places to waiting users in turns, so that a user with one
// request waits for at most one request of each other user. The zero value has no
// places. Safe for concurrent use.
type Queue struct {
	// What names the places in a refusal: "lists of the queue".
	What string
	// Places is the number of places, PerUser how many of them a user of weight 1 may
	// have at the same time.
	Places, PerUser int
	// Waiting is how many requests of a user of weight 1 may wait; 0: a request that
	// finds no place is refused at once.
	Waiting int
	// Patience is how long a request waits.
	Patience time.Duration

	mu    sync.Mutex
	taken int
	users map[string]*userQueue
	turns []string // waiting users in the order in which they get places
}

// userQueue is one user's part of a Queue.
type userQueue struct {
	taken   int
	limit   int // places that the user may have
	waiting []*ticket
}

// ticket is a waiting request.
type ticket struct{ granted chan struct{} }

// Acquire returns when the user has got a place. release returns the place, and may be
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

// enter takes a free place and returns nil, or returns a ticket that waits for one.
func (q *Queue) enter(user string, weight int) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users == nil {
		q.users = map[string]*userQueue{}
	}
	l := q.users[user]
	if l == nil {
		l = &userQueue{}
		q.users[user] = l
	}
	l.limit = q.PerUser * weight
	if q.taken < q.Places && l.taken < l.limit && len(l.waiting) == 0 {
		q.taken++
		l.taken++
		return nil, nil
	}
	if len(l.waiting) >= q.Waiting*weight {
		q.drop(user, l)
		if l.taken < l.limit {
			return nil, &Refusal{What: q.What, After: 5 * time.Second}
		}
		return nil, &Refusal{What: q.What, Own: l.taken + len(l.waiting), After: time.Second}
	}
	t := &ticket{make(chan struct{})}
	l.waiting = append(l.waiting, t)
	if len(l.waiting) == 1 {
		q.turns = append(q.turns, user)
	}
	return t, nil
}

// await returns nil when the ticket has got a place.
func (q *Queue) await(ctx context.Context, user string, t *ticket) error {
	timeout := time.NewTimer(q.Patience)
	defer timeout.Stop()
	var err error
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = &Refusal{What: q.What, After: 5 * time.Second}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.users[user]
	if l == nil || !slices.Contains(l.waiting, t) { // it got a place meanwhile
		q.returnPlace(user)
		return err
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(o *ticket) bool { return o == t })
	if len(l.waiting) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(u string) bool { return u == user })
	}
	q.drop(user, l)
	return err
}

func (q *Queue) release(user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.returnPlace(user)
}

// returnPlace returns a place of the user and grants free places. The caller holds mu.
func (q *Queue) returnPlace(user string) {
	l := q.users[user]
	q.taken--
	l.taken--
	q.grant()
	q.drop(user, l)
}

// grant grants free places to waiting users in turns. The caller holds mu.
func (q *Queue) grant() {
	for q.taken < q.Places {
		at := slices.IndexFunc(q.turns, func(u string) bool { return q.users[u].taken < q.users[u].limit })
		if at < 0 {
			return
		}
		user := q.turns[at]
		l := q.users[user]
		q.turns = slices.Delete(q.turns, at, at+1)
		close(l.waiting[0].granted)
		l.waiting = l.waiting[1:]
		if len(l.waiting) > 0 {
			q.turns = append(q.turns, user)
		}
		q.taken++
		l.taken++
	}
}

// drop drops a user who neither has a place nor waits. The caller holds mu.
func (q *Queue) drop(user string, l *userQueue) {
	if l.taken == 0 && len(l.waiting) == 0 {
		delete(q.users, user)
	}
}
