package coord

import (
	"bytes"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// Limits of a broadcaster, in bytes: the output that it keeps for later subscribers, and
// the queue of a slow subscriber.
const (
	keptBytes  = 64 << 10
	queueBytes = 8 << 20
)

// broadcaster forwards a step's frames to its observers (sattach). It never waits
// for them: a subscriber that reads too slowly is dropped. It is safe for
// concurrent use.
type broadcaster struct {
	mu          sync.Mutex
	created     *step.Created
	kept        []*step.Frame // the latest output, and every exit
	keptSize    int           // bytes of output in kept
	subscribers map[*subscriber]bool
	closed      bool
}

// subscriber is the queue of one observer.
type subscriber struct {
	queue   []*step.Frame
	size    int
	dropped bool
	over    bool
	wake    chan struct{}
}

func newBroadcaster() *broadcaster { return &broadcaster{subscribers: map[*subscriber]bool{}} }

// open admits subscribers.
func (b *broadcaster) open(c *step.Created) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.created = c
}

// send queues a copy of f for every subscriber, if observers get frames of its
// type.
func (b *broadcaster) send(f *step.Frame) {
	switch f.Type {
	case step.FrameStdout, step.FrameStderr, step.FrameExit, step.FrameNotice, step.FrameNodeLost, step.FrameAborted:
	default:
		return
	}
	frame := *f
	frame.Data = bytes.Clone(f.Data)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(&frame)
	for s := range b.subscribers {
		if s.size += len(frame.Data); s.size > queueBytes {
			s.dropped = true
			delete(b.subscribers, s)
		} else {
			s.queue = append(s.queue, &frame)
		}
		s.notify()
	}
}

// keep adds f to the kept frames and removes the oldest output beyond the limit.
// The caller holds b.mu.
func (b *broadcaster) keep(f *step.Frame) {
	b.kept = append(b.kept, f)
	if f.Type == step.FrameExit {
		return
	}
	b.keptSize += len(f.Data)
	for i := 0; b.keptSize > keptBytes && i < len(b.kept); {
		if old := b.kept[i]; old.Type != step.FrameExit {
			b.keptSize -= len(old.Data)
			b.kept = append(b.kept[:i], b.kept[i+1:]...)
			continue
		}
		i++
	}
}

func (s *subscriber) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// subscribe returns a subscriber that begins with the kept frames, or nil if the
// step does not run.
func (b *broadcaster) subscribe() (*step.Created, *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.created == nil {
		return nil, nil
	}
	s := &subscriber{queue: append([]*step.Frame(nil), b.kept...), wake: make(chan struct{}, 1)}
	s.notify()
	b.subscribers[s] = true
	return b.created, s
}

// next returns the frames that are queued for s. more is false after the last.
func (b *broadcaster) next(s *subscriber) (frames []*step.Frame, dropped, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	frames = s.queue
	s.queue, s.size = nil, 0
	return frames, s.dropped, !s.over && !s.dropped
}

func (b *broadcaster) unsubscribe(s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subscribers, s)
}

// close ends all subscriptions at the end of the step.
func (b *broadcaster) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.subscribers {
		s.over = true
		s.notify()
	}
	b.subscribers = map[*subscriber]bool{}
	b.kept = nil
}

// attach sends the frames of a running step to the client at conn, and its signals to the
// step, until the step ends or the client disconnects.
func (c *Coordinator) attach(conn *step.Conn, f *step.Frame) {
	var a step.Attach
	if f.Decode(&a) != nil {
		return
	}
	s := c.running()[a.StepID]
	var created *step.Created
	var observer *subscriber
	if s != nil {
		created, observer = s.observers.subscribe()
	}
	if observer == nil {
		const text = "Could not get job step info: Invalid job id specified"
		conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(text)}) //nolint:errcheck // it may be gone
		conn.Send(&step.Frame{Type: step.FrameDone})                        //nolint:errcheck // it may be gone
		return
	}
	defer s.observers.unsubscribe(observer)
	if conn.SendJSON(step.FrameCreated, created) != nil {
		return
	}
	if !a.LayoutOnly {
		gone := make(chan struct{})
		go s.readObserver(conn, gone)
		s.sendToObserver(conn, observer, gone)
	}
	conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // it may be gone
}

// sendToObserver sends the step's frames to an observer.
func (s *session) sendToObserver(conn *step.Conn, observer *subscriber, gone <-chan struct{}) {
	for {
		select {
		case <-observer.wake:
		case <-gone:
			return
		}
		frames, dropped, more := s.observers.next(observer)
		for _, f := range frames {
			if conn.Send(f) != nil {
				return
			}
		}
		if dropped {
			const text = "slurmstepd: error: the client does not read the output fast enough; detached\n"
			conn.Send(&step.Frame{Type: step.FrameNotice, Data: []byte(text)}) //nolint:errcheck // it may be gone
		}
		if !more {
			return
		}
	}
}

// readObserver handles signals from an observer. Input remains reserved for the
// srun of the step: two senders could not share the tasks' credit.
func (s *session) readObserver(conn *step.Conn, gone chan<- struct{}) {
	defer close(gone)
	for {
		f, err := conn.Receive()
		if err != nil {
			return
		}
		var sig step.Signal
		if f.Type == step.FrameSignal && f.Decode(&sig) == nil && !sig.Terminate {
			s.signal(&step.Signal{Signal: sig.Signal})
		}
	}
}
