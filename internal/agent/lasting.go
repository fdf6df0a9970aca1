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

// awayTime is how long clients may stay away whose connection broke; Config.Away
// says otherwise.
const awayTime = 30 * time.Second

// Bounds of such clients: how many there are, and how long the agent's end
// waits for what they have not got.
const (
	maxLasting = 1024
	drainTime  = 2 * time.Second
)

// lasting are the streams of clients that come again. Safe for concurrent use.
type lasting struct {
	away time.Duration // how long they may stay away

	mu      sync.Mutex
	streams map[string]*resume.Stream
	clients map[string]string // token of the client's stream
}

// add makes a stream of a client; nil: there are too many.
func (x *lasting) add(client string) (token string, s *resume.Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.streams) >= maxLasting {
		return "", nil
	}
	if x.streams == nil {
		x.streams, x.clients = map[string]*resume.Stream{}, map[string]string{}
	}
	token, s = rand.Text(), resume.New(x.away)
	x.streams[token] = s
	if client != "" {
		x.clients[client] = token
	}
	return token, s
}

func (x *lasting) get(token string) *resume.Stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.streams[token]
}

func (x *lasting) remove(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.streams, token)
	maps.DeleteFunc(x.clients, func(_, t string) bool { return t == token })
}

// hungUp ends the stream of a client that was lost, and will not come back.
func (x *lasting) hungUp(client string) {
	x.mu.Lock()
	s := x.streams[x.clients[client]]
	x.mu.Unlock()
	if s != nil {
		s.Abandon()
	}
}

// drain gives the clients what they have not got, if they take it soon.
func (x *lasting) drain() {
	x.mu.Lock()
	var all []*resume.Stream
	for _, s := range x.streams {
		all = append(all, s)
	}
	x.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.Drain(drainTime) })
	}
	wg.Wait()
}

// serveLasting serves a client that comes again, or gives one that has come its
// stream back. The token is known to that client alone, and only who may attach
// to the job gets here.
func (a *Agent) serveLasting(ctx context.Context, conn *step.Conn, open *step.Open) {
	token, has := open.Token, uint64(0)
	var s *resume.Stream
	if token == "" {
		token, s = a.lasting.add(open.Client)
	} else if s = a.lasting.get(token); s != nil {
		has = s.Detach()
	}
	if s == nil {
		conn.SendJSON(step.FrameResumable, step.Resumable{}) //nolint:errcheck // as it goes
		conn.Close()
		return
	}
	answer := step.Resumable{Token: token, Received: has, Grace: int32(a.lasting.away / time.Second),
		SrunProlog: a.welcomeSite().SrunProlog, SrunEpilog: a.welcomeSite().SrunEpilog}
	err := conn.SendJSON(step.FrameResumable, answer)
	if err == nil {
		raw, r := conn.Raw()
		err = s.Use(raw, r, open.Received)
	}
	if open.Token != "" {
		if err != nil {
			conn.Close() // the client tries again
		}
		return
	}
	if err != nil {
		conn.Close()
		a.lasting.remove(token)
		return
	}
	a.coord.Serve(ctx, step.NewConn(&drained{Stream: s, away: a.lasting.away, over: func() { a.lasting.remove(token) }}))
}

// drained is a stream whose Close does not wait, and loses nothing for as long
// as its client may still come.
type drained struct {
	*resume.Stream
	away time.Duration
	once sync.Once
	over func()
}

func (d *drained) Close() error {
	d.once.Do(func() {
		go func() {
			d.Drain(d.away)
			d.over()
		}()
	})
	return nil
}
