package agent

import (
	"context"
	"crypto/rand"
	"maps"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/resume"
)

// defaultResumeGrace is the default of Config.ResumeGrace.
const defaultResumeGrace = 30 * time.Second

// Limits: the number of resumable clients, and how long the end of the agent waits
// until they have received everything.
const (
	maxResumable = 1024
	drainTimeout = 2 * time.Second
)

// resumableClients are the streams of clients that reconnect. It is safe for
// concurrent use.
type resumableClients struct {
	grace time.Duration // in which a client must reconnect

	mu      sync.Mutex
	streams map[string]*resume.Stream
	clients map[string]string // token of each client's stream
}

// add creates the stream of a client. It returns nil if there are too many.
func (x *resumableClients) add(client string) (token string, s *resume.Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.streams) >= maxResumable {
		return "", nil
	}
	if x.streams == nil {
		x.streams, x.clients = map[string]*resume.Stream{}, map[string]string{}
	}
	token, s = rand.Text(), resume.New(x.grace)
	x.streams[token] = s
	if client != "" {
		x.clients[client] = token
	}
	return token, s
}

func (x *resumableClients) get(token string) *resume.Stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.streams[token]
}

func (x *resumableClients) remove(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.streams, token)
	maps.DeleteFunc(x.clients, func(_, t string) bool { return t == token })
}

// hungUp fails the stream of a client that has disconnected and will not reconnect.
func (x *resumableClients) hungUp(client string) {
	x.mu.Lock()
	s := x.streams[x.clients[client]]
	x.mu.Unlock()
	if s != nil {
		s.Abandon()
	}
}

// drain waits, within drainTimeout, until all clients have received everything.
func (x *resumableClients) drain() {
	x.mu.Lock()
	var all []*resume.Stream
	for _, s := range x.streams {
		all = append(all, s)
	}
	x.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.Drain(drainTimeout) })
	}
	wg.Wait()
}

// serveResumable serves a new resumable client, or resumes the stream of one that
// reconnects. Only that client knows the token, and only clients that may attach
// to the job are served here.
func (a *Agent) serveResumable(ctx context.Context, conn *step.Conn, open *step.Open) {
	token, received := open.Token, uint64(0)
	var s *resume.Stream
	if token == "" {
		token, s = a.clients.add(open.Client)
	} else if s = a.clients.get(token); s != nil {
		received = s.Detach()
	}
	if s == nil {
		conn.SendJSON(step.FrameResumable, step.Resumable{}) //nolint:errcheck // it may be gone
		conn.Close()
		return
	}
	site := a.welcomeSite()
	answer := step.Resumable{
		Token: token, Received: received, Grace: int32(a.clients.grace / time.Second),
		SrunProlog: site.SrunProlog, SrunEpilog: site.SrunEpilog,
	}
	err := conn.SendJSON(step.FrameResumable, answer)
	if err == nil {
		raw, r := conn.Raw()
		err = s.Attach(raw, r, open.Received)
	}
	if open.Token != "" {
		if err != nil {
			conn.Close() // the client tries again
		}
		return
	}
	if err != nil {
		conn.Close()
		a.clients.remove(token)
		return
	}
	a.coord.Serve(ctx, step.NewConn(&drainedStream{
		Stream: s, timeout: a.clients.grace, onClose: func() { a.clients.remove(token) },
	}))
}

// drainedStream is a stream whose Close returns immediately and drains the stream in the
// background, for as long as the client may reconnect.
type drainedStream struct {
	*resume.Stream
	timeout time.Duration
	once    sync.Once
	onClose func()
}

func (d *drainedStream) Close() error {
	d.once.Do(func() {
		go func() {
			d.Drain(d.timeout)
			d.onClose()
		}()
	})
	return nil
}
