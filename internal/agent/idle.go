package agent

import (
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// Bounds of the connections that are kept for the next step: how many to one
// node, and for how long.
const (
	idleEach = 4
	idleTime = 5 * time.Minute
)

// idle are connections to other agents on which no step runs. Making one costs
// a handshake on both sides, which is most of what a short step costs. Safe
// for concurrent use.
type idle struct {
	mu   sync.Mutex
	kept map[int32][]kept
}

type kept struct {
	conn  *step.Conn
	since time.Time
}

// take is a connection to node that was good when it was put back; nil: there
// is none.
func (x *idle) take(node int32) *step.Conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	for list := x.kept[node]; len(list) > 0; list = x.kept[node] {
		last := list[len(list)-1]
		x.kept[node] = list[:len(list)-1]
		if time.Since(last.since) < idleTime && !last.conn.Broken() {
			return last.conn
		}
		last.conn.Close()
	}
	return nil
}

func (x *idle) put(node int32, conn *step.Conn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept == nil {
		x.kept = map[int32][]kept{}
	}
	if len(x.kept[node]) >= idleEach {
		conn.Close()
		return
	}
	x.kept[node] = append(x.kept[node], kept{conn, time.Now()})
}

// keep takes a connection back after a step.
func (a *Agent) keep(node int32, conn *step.Conn) { a.idle.put(node, conn) }
