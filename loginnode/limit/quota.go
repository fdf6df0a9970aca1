package limit

import (
	"fmt"
	"sync"
)

// Quotas limits what one user uses of the server, over all connections: all users share
// its memory and descriptors, and a channel whose other end does not read may buffer
// two megabytes. It is safe for concurrent use.
type Quotas struct {
	conns, channels int // of one user

	mu    sync.Mutex
	users map[int]*usage // by uid
}

type usage struct {
	name            string
	conns, channels int
}

// NewQuotas returns quotas with these numbers of connections and channels for each
// user.
func NewQuotas(conns, channels int) *Quotas {
	return &Quotas{conns: conns, channels: channels, users: map[int]*usage{}}
}

// AddConnection counts a connection in, or returns an error that says why not. Two
// names with one uid, from two sources perhaps, are two people: they do not share
// a credential.
func (q *Quotas) AddConnection(uid int, name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.users[uid]
	switch {
	case u == nil:
		u = &usage{name: name}
		q.users[uid] = u
	case u.name != name:
		return fmt.Errorf("uid %d is that of user %s, who is logged in", uid, u.name)
	case u.conns >= q.conns:
		return fmt.Errorf("user %s has %d connections already", name, u.conns)
	}
	u.conns++
	return nil
}

// RemoveConnection is called once for each connection that was added.
func (q *Quotas) RemoveConnection(uid int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.users[uid]
	u.conns--
	q.forget(uid, u)
}

// forget deletes empty quotas; a channel may end after its connection.
func (q *Quotas) forget(uid int, u *usage) {
	if u.conns == 0 && u.channels == 0 {
		delete(q.users, uid)
	}
}

// Channels returns the quota of channels of a user who has a connection.
func (q *Quotas) Channels(uid int) Channels { return Channels{q, uid} }

// Channels is one user's quota of channels. It is a forward.Room.
type Channels struct {
	quotas *Quotas
	uid    int
}

// Enter counts a channel in; it reports whether the quota allows it.
func (c Channels) Enter() bool {
	c.quotas.mu.Lock()
	defer c.quotas.mu.Unlock()
	u := c.quotas.users[c.uid]
	if u == nil || u.channels >= c.quotas.channels {
		return false
	}
	u.channels++
	return true
}

// Leave is called once for each channel that has entered.
func (c Channels) Leave() {
	c.quotas.mu.Lock()
	defer c.quotas.mu.Unlock()
	u := c.quotas.users[c.uid]
	u.channels--
	c.quotas.forget(c.uid, u)
}
