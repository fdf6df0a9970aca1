package launch

import (
	"bytes"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// outbox queues frames for a receiver that may read slowly, so that a sender does not wait
// for any of its receivers. It is safe for concurrent use.
type outbox struct {
	mu    sync.Mutex
	queue []*step.Frame
	wake  chan struct{}
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1)} }

// send queues a copy of f.
func (o *outbox) send(f *step.Frame) { o.enqueue(clone(f)) }

// clone returns a copy of f with its own data.
func clone(f *step.Frame) *step.Frame {
	g := *f
	g.Data = bytes.Clone(f.Data)
	return &g
}

// enqueue queues f, which must not be changed afterwards.
func (o *outbox) enqueue(f *step.Frame) {
	o.mu.Lock()
	o.queue = append(o.queue, f)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// drainTo sends queued frames until done is closed.
func (o *outbox) drainTo(conn *step.Conn, done <-chan struct{}) {
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
