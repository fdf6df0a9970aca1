package launch

import (
	"bytes"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// outbox holds frames for one who may read slowly, so that whoever sends to
// many waits for none. Safe for concurrent use.
type outbox struct {
	mu    sync.Mutex
	queue []*step.Frame
	wake  chan struct{}
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1)} }

// send queues a copy of f.
func (o *outbox) send(f *step.Frame) { o.keep(kept(f)) }

// kept is a copy of f that nobody changes any more.
func kept(f *step.Frame) *step.Frame {
	g := *f
	g.Data = bytes.Clone(f.Data)
	return &g
}

// keep queues f, which nobody may change any more.
func (o *outbox) keep(f *step.Frame) {
	o.mu.Lock()
	o.queue = append(o.queue, f)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pump sends what is queued until done.
func (o *outbox) pump(conn *step.Conn, done <-chan struct{}) {
	for {
		o.mu.Lock()
		frames := o.queue
		o.queue = nil
		o.mu.Unlock()
		for _, f := range frames {
			if conn.Send(f) != nil {
				return
			}
		}
		if len(frames) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-done:
			return
		}
	}
}
