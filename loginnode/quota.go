package loginnode

import (
	"fmt"
	"sync"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// quotas bound what one user holds of the server, over all connections: all
// users share its memory and its descriptors, and a channel whose other end
// does not read may hold two megabytes. It is safe for concurrent use.
type quotas struct {
	conns, channels int // of one user

	mu    sync.Mutex
	users map[int]*quota // by uid
}

type quota struct {
	name            string
	conns, channels int
}

func newQuotas(conns, channels int) *quotas {
	return &quotas{conns: conns, channels: channels, users: map[int]*quota{}}
}

// join counts a connection in, or says why not. Two names with one uid, from
// two sources perhaps, are two people: they do not share a credential.
func (q *quotas) join(u *auth.User) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.users[u.UID]
	switch {
	case own == nil:
		own = &quota{name: u.Name}
		q.users[u.UID] = own
	case own.name != u.Name:
		return fmt.Errorf("uid %d is that of user %s, who is logged in", u.UID, own.name)
	case own.conns >= q.conns:
		return fmt.Errorf("user %s has %d connections already", u.Name, own.conns)
	}
	own.conns++
	return nil
}

// part is called once for each connection that has joined.
func (q *quotas) part(u *auth.User) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.users[u.UID]
	own.conns--
	q.forget(u.UID, own)
}

// forget drops what is empty; a channel may end after its connection.
func (q *quotas) forget(uid int, own *quota) {
	if own.conns == 0 && own.channels == 0 {
		delete(q.users, uid)
	}
}

// room is a user's share, as forward.Room.
type room struct {
	quotas *quotas
	uid    int
}

// Enter counts a channel in; it tells whether there is room.
func (r room) Enter() bool {
	r.quotas.mu.Lock()
	defer r.quotas.mu.Unlock()
	own := r.quotas.users[r.uid]
	if own == nil || own.channels >= r.quotas.channels {
		return false
	}
	own.channels++
	return true
}

// Leave is called once for each channel that has entered.
func (r room) Leave() {
	r.quotas.mu.Lock()
	defer r.quotas.mu.Unlock()
	own := r.quotas.users[r.uid]
	own.channels--
	r.quotas.forget(r.uid, own)
}
