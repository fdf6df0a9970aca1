package agent

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// Limits of the connections that are kept for the next step.
const (
	maxIdlePerNode = 4
	idleTimeout    = 5 * time.Minute
)

// idleConns is a pool of connections to other agents on which no step runs. The
// handshake of a new connection is most of the cost of a short step. It is safe
// for concurrent use.
type idleConns struct {
	mu    sync.Mutex
	conns map[int32][]idleConn // by node
}

type idleConn struct {
	conn  *step.Conn
	since time.Time
}

// get returns a working connection to node, or nil if there is none.
func (x *idleConns) get(node int32) *step.Conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	for list := x.conns[node]; len(list) > 0; list = x.conns[node] {
		last := list[len(list)-1]
		x.conns[node] = list[:len(list)-1]
		if time.Since(last.since) < idleTimeout && !last.conn.Broken() {
			return last.conn
		}
		last.conn.Close()
	}
	return nil
}

func (x *idleConns) put(node int32, conn *step.Conn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.conns == nil {
		x.conns = map[int32][]idleConn{}
	}
	if len(x.conns[node]) >= maxIdlePerNode {
		conn.Close()
		return
	}
	x.conns[node] = append(x.conns[node], idleConn{conn, time.Now()})
}

// keepConn returns a connection to the pool after a step.
func (a *Agent) keepConn(node int32, conn *step.Conn) { a.idle.put(node, conn) }
