package coord

import (
	"bytes"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// Bounds of what is kept for those who look on a step: output that they missed
// before they came, and what one that reads slowly may be behind.
const (
	keptBytes   = 64 << 10
	behindBytes = 8 << 20
)

// hub passes a step's frames on to those who look on (sattach). It never
// waits for them: who is too far behind is let go. Safe for concurrent use.
type hub struct {
	mu      sync.Mutex
	created *step.Created
	kept    []*step.Frame // the last output, and every exit
	size    int           // of the output among kept
	seats   map[*seat]bool
	closed  bool
}

// seat is the queue of one who looks on.
type seat struct {
	queue []*step.Frame
	size  int
	lost  bool
	over  bool
	wake  chan struct{}
}

func newHub() *hub { return &hub{seats: map[*seat]bool{}} }

func (h *hub) begin(c *step.Created) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.created = c
}

// send keeps a copy of f.
func (h *hub) send(f *step.Frame) {
	switch f.Type {
	case step.FrameStdout, step.FrameStderr, step.FrameExit, step.FrameNotice, step.FrameNodeLost, step.FrameAborted:
	default:
		return
	}
	g := *f
	g.Data = bytes.Clone(f.Data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(&g)
	for s := range h.seats {
		if s.size += len(g.Data); s.size > behindBytes {
			s.lost = true
			delete(h.seats, s)
		} else {
			s.queue = append(s.queue, &g)
		}
		s.poke()
	}
}

func (h *hub) keep(f *step.Frame) {
	h.kept = append(h.kept, f)
	if f.Type == step.FrameExit {
		return
	}
	h.size += len(f.Data)
	for i := 0; h.size > keptBytes && i < len(h.kept); {
		if old := h.kept[i]; old.Type != step.FrameExit {
			h.size -= len(old.Data)
			h.kept = append(h.kept[:i], h.kept[i+1:]...)
			continue
		}
		i++
	}
}

func (s *seat) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// join takes a seat, with what was kept; nil: the step is over.
func (h *hub) join() (*step.Created, *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.created == nil {
		return nil, nil
	}
	s := &seat{queue: append([]*step.Frame(nil), h.kept...), wake: make(chan struct{}, 1)}
	s.poke()
	h.seats[s] = true
	return h.created, s
}

// next takes what has come for the seat; more is false after the last.
func (h *hub) next(s *seat) (frames []*step.Frame, lost, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	frames, s.queue, s.size = s.queue, nil, 0
	return frames, s.lost, !s.over && !s.lost
}

func (h *hub) leave(s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seats, s)
}

// close is the end of the step.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.seats {
		s.over = true
		s.poke()
	}
	h.seats = map[*seat]bool{}
	h.kept = nil
}

// attach shows a running step to the client at conn and passes on what it
// sends, until either is over.
func (c *Coordinator) attach(conn *step.Conn, f *step.Frame) {
	var a step.Attach
	if f.Decode(&a) != nil {
		return
	}
	s := c.running()[a.StepID]
	var created *step.Created
	var seat *seat
	if s != nil {
		created, seat = s.hub.join()
	}
	if seat == nil {
		conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte("Could not get job step info: Invalid job id specified")}) //nolint:errcheck // as it goes
		conn.Send(&step.Frame{Type: step.FrameDone})                                                                           //nolint:errcheck // as it goes
		return
	}
	defer s.hub.leave(seat)
	if conn.SendJSON(step.FrameCreated, created) != nil {
		return
	}
	if !a.LayoutOnly {
		gone := make(chan struct{})
		go s.serveGuest(conn, gone)
		s.watch(conn, seat, gone)
	}
	conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // as it goes
}

// watch sends the step's frames to one who looks on.
func (s *session) watch(conn *step.Conn, seat *seat, gone <-chan struct{}) {
	for {
		select {
		case <-seat.wake:
		case <-gone:
			return
		}
		frames, lost, more := s.hub.next(seat)
		for _, f := range frames {
			if conn.Send(f) != nil {
				return
			}
		}
		if lost {
			conn.Send(&step.Frame{Type: step.FrameNotice, Data: []byte("slurmstepd: error: output comes faster than it is read; detached\n")}) //nolint:errcheck // as it goes
		}
		if !more {
			return
		}
	}
}

// serveGuest takes signals from one who looks on. Input stays with the srun
// that has the step: two could not share the tasks' credit.
func (s *session) serveGuest(conn *step.Conn, gone chan<- struct{}) {
	defer close(gone)
	for {
		f, err := conn.Receive()
		if err != nil {
			return
		}
		var sig step.Signal
		if f.Type == step.FrameSignal && f.Decode(&sig) == nil && !sig.Terminate {
			s.down(&step.Signal{Signal: sig.Signal})
		}
	}
}
