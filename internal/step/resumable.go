package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-hpc/berth/internal/step/resume"
)

// Dialer connects to the agent of a job's first node. temporary means that another
// attempt may succeed after this error.
type Dialer func(ctx context.Context) (conn io.ReadWriteCloser, temporary bool, err error)

// Timeouts of a resumable client.
const (
	responseTimeout = 10 * time.Second
	reconnectPause  = 500 * time.Millisecond
	flushTimeout    = 2 * time.Second
)

// DialResumable connects a client that reconnects when the connection breaks, for as
// long as the agent waits for it. client is the name by which dial announces the client to
// the API role. notify is called in another goroutine: with the cause when the connection
// breaks, and with nil when it is restored. The error is a *RefusedError if the agent
// refuses the client.
func DialResumable(
	ctx context.Context, client string, dial Dialer, notify func(cause error),
) (*Conn, *Resumable, error) {
	conn, _, err := dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	first := NewConn(conn)
	resumable, err := first.openResumable(&Open{Kind: KindResumable, Client: client})
	if err != nil {
		first.Close()
		return nil, nil, fmt.Errorf("connect to the agent of the job: %w", err)
	}
	r := &redialer{
		ctx: ctx, dial: dial, notify: notify,
		token: resumable.Token, grace: time.Duration(resumable.Grace) * time.Second,
	}
	r.stream = resume.New(r.grace)
	r.stream.DetectSilence()
	r.stream.OnLoss(r.reconnect)
	raw, reader := first.Raw()
	if err := r.stream.Attach(raw, reader, 0); err != nil {
		return nil, nil, err
	}
	return NewConn(r), &resumable, nil
}

// openResumable opens a new resumable stream, or resumes the one that open
// names.
func (c *Conn) openResumable(open *Open) (resumable Resumable, err error) {
	if err = c.SendJSON(FrameOpen, open); err != nil {
		return resumable, err
	}
	f, err := c.Receive()
	switch {
	case err != nil:
	case f.Type == FrameRefused:
		err = Refuse(string(f.Data))
	case f.Type != FrameResumable:
		err = fmt.Errorf("%w: type %d in place of %d", ErrFrame, f.Type, FrameResumable)
	default:
		err = f.Decode(&resumable)
	}
	return resumable, err
}

// redialer is a stream that reconnects when its connection breaks.
type redialer struct {
	ctx    context.Context
	dial   Dialer
	notify func(cause error)
	stream *resume.Stream
	token  string
	grace  time.Duration
}

func (r *redialer) Read(b []byte) (int, error)  { return r.stream.Read(b) }
func (r *redialer) Write(b []byte) (int, error) { return r.stream.Write(b) }

// Close sends what was written before it closes the stream.
func (r *redialer) Close() error {
	r.stream.Flush(flushTimeout)
	return nil
}

// reconnect dials until the stream is resumed or can no longer be.
func (r *redialer) reconnect(cause error) {
	r.notify(cause)
	ctx, cancel := context.WithTimeout(r.ctx, r.grace)
	defer cancel()
	for {
		err := r.resume(ctx)
		switch {
		case err == nil:
			r.notify(nil)
			return
		case errors.Is(err, resume.ErrGone) || ctx.Err() != nil:
			r.stream.Fail(resume.ErrGone)
			return
		}
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
		}
	}
}

// resume makes one attempt to reconnect. After resume.ErrGone further attempts
// are pointless.
func (r *redialer) resume(ctx context.Context) error {
	raw, temporary, err := r.dial(r.ctx) // the connection must outlive ctx
	if err != nil {
		if !temporary {
			return fmt.Errorf("%w: %w", resume.ErrGone, err)
		}
		return err
	}
	conn := NewConn(raw)
	timeout := time.AfterFunc(responseTimeout, func() { conn.Close() })
	resumable, err := conn.openResumable(&Open{Kind: KindResumable, Token: r.token, Received: r.stream.Detach()})
	if !timeout.Stop() || err != nil {
		conn.Close()
		return errors.Join(ctx.Err(), err)
	}
	if resumable.Token != r.token {
		conn.Close()
		return resume.ErrGone // the agent no longer has the stream
	}
	raw, reader := conn.Raw()
	return r.stream.Attach(raw, reader, resumable.Received)
}
