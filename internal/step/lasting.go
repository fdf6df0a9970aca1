package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-hpc/berth/internal/step/resume"
)

// Dialer connects to the agent of a job's first node. again: an error may pass.
type Dialer func(ctx context.Context) (conn io.ReadWriteCloser, again bool, err error)

// Times of a client that comes again.
const (
	answerTime = 10 * time.Second
	pauseTime  = 500 * time.Millisecond
	flushTime  = 2 * time.Second
)

// NewLasting connects a client that connects again when the connection breaks,
// for as long as the agent waits for it. tell is called, from another
// goroutine, with the reason when it breaks and with nil when it is back. client
// is what dial calls the client to the API role. The error is *Impossible where
// the agent refuses.
func NewLasting(ctx context.Context, client string, dial Dialer, tell func(lost error)) (*Conn, *Lasting, error) {
	conn, _, err := dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	first := NewConn(conn)
	answer, err := first.openLasting(&Open{Kind: KindLasting, Client: client})
	if err != nil {
		first.Close()
		return nil, nil, fmt.Errorf("connect to the agent of the job: %w", err)
	}
	l := &redialer{ctx: ctx, dial: dial, tell: tell, token: answer.Token, grace: time.Duration(answer.Grace) * time.Second}
	l.stream = resume.New(l.grace)
	l.stream.Watch()
	l.stream.OnLoss(l.lost)
	raw, r := first.Raw()
	if err := l.stream.Use(raw, r, 0); err != nil {
		return nil, nil, err
	}
	return NewConn(l), &answer, nil
}

// openLasting asks for a stream, or for one to go on.
func (c *Conn) openLasting(open *Open) (answer Lasting, err error) {
	if err = c.SendJSON(FrameOpen, open); err != nil {
		return answer, err
	}
	f, err := c.Receive()
	switch {
	case err != nil:
	case f.Type == FrameRefused:
		err = &Impossible{Line: []string{string(f.Data)}}
	case f.Type != FrameLasting:
		err = fmt.Errorf("%w: type %d in place of %d", ErrFrame, f.Type, FrameLasting)
	default:
		err = f.Decode(&answer)
	}
	return answer, err
}

// redialer is a stream and the way to its next connection.
type redialer struct {
	ctx    context.Context
	dial   Dialer
	tell   func(error)
	stream *resume.Stream
	token  string
	grace  time.Duration
}

func (l *redialer) Read(b []byte) (int, error)  { return l.stream.Read(b) }
func (l *redialer) Write(b []byte) (int, error) { return l.stream.Write(b) }

// Close lets what was written go out first.
func (l *redialer) Close() error {
	l.stream.Flush(flushTime)
	return nil
}

// lost connects again.
func (l *redialer) lost(why error) {
	l.tell(why)
	ctx, cancel := context.WithTimeout(l.ctx, l.grace)
	defer cancel()
	for {
		err := l.again(ctx)
		switch {
		case err == nil:
			l.tell(nil)
			return
		case errors.Is(err, resume.ErrGone) || ctx.Err() != nil:
			l.stream.Fail(resume.ErrGone)
			return
		}
		select {
		case <-time.After(pauseTime):
		case <-ctx.Done():
		}
	}
}

// again tries once. resume.ErrGone: another try is no use.
func (l *redialer) again(ctx context.Context) error {
	raw, again, err := l.dial(l.ctx) // what bounds the try must not end the connection
	if err != nil {
		if !again {
			return fmt.Errorf("%w: %w", resume.ErrGone, err)
		}
		return err
	}
	conn := NewConn(raw)
	late := time.AfterFunc(answerTime, func() { conn.Close() })
	answer, err := conn.openLasting(&Open{Kind: KindLasting, Token: l.token, Has: l.stream.Leave()})
	if !late.Stop() || err != nil {
		conn.Close()
		return errors.Join(ctx.Err(), err)
	}
	if answer.Token != l.token {
		conn.Close()
		return resume.ErrGone // it does not know us any more
	}
	raw, r := conn.Raw()
	return l.stream.Use(raw, r, answer.Has)
}
