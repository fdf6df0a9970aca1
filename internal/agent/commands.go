package agent

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/apiclient"
	"github.com/berth-hpc/berth/internal/wire"
)

// firstLook is how long a script runs before commands are asked for: one that is
// over by then costs no question.
const firstLook = 20 * time.Millisecond

// obey does what the API role commands, until ctx is cancelled.
func (b *batch) obey(ctx context.Context) {
	select {
	case <-time.After(firstLook):
	case <-ctx.Done():
	}
	seq := int64(0)
	for ctx.Err() == nil {
		items, err := b.a.api.Commands(ctx, seq)
		var final *apiclient.Final
		switch {
		case errors.As(err, &final) && (final.Code == http.StatusGone || final.Code == http.StatusNotFound):
			// The attempt is over for the rest of the world.
			b.terminate("CANCELLED")
			return
		case err != nil:
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
			continue
		}
		for i := range items {
			if items[i].Seq > seq {
				seq = items[i].Seq
				b.do(&items[i])
			}
		}
	}
}

func (b *batch) do(c *wire.Command) {
	switch c.Kind {
	case wire.CommandTerminate:
		b.terminate(c.Reason)
	case wire.CommandComplete:
		b.complete(c.Status)
	case wire.CommandSignal:
		if c.End && len(c.Steps) > 0 {
			b.a.coord.Cancel(c.By, c.Steps...)
			return
		}
		if len(c.Steps) > 0 {
			b.a.coord.Signal(c.Signal, c.Steps...)
			return
		}
		if c.Every {
			b.a.suspend(c.Signal == int32(syscall.SIGSTOP))
			return
		}
		b.signal(c.Signal, c.Batch, c.Full)
	case wire.CommandHungUp:
		b.a.lasting.hungUp(c.Client)
	case wire.CommandLimit:
		if len(c.Steps) > 0 {
			b.a.coord.SetTimeLimit(c.Minutes, c.Steps...)
			return
		}
		b.warning.until(c.EndTime)
	case wire.CommandNotify:
		b.files.say("slurmstepd: error: " + c.Text)
	}
}

// signal sends sig where scancel(1) says: with batch to the batch shell alone,
// with full to everything, else to the steps.
func (b *batch) signal(sig int32, shell, full bool) {
	switch {
	case shell && !full:
		b.shell(syscall.Signal(sig))
	case full:
		b.session(syscall.Signal(sig))
		b.a.coord.Signal(sig)
	default:
		b.a.coord.Signal(sig)
	}
}

func (b *batch) shell(sig syscall.Signal) {
	if b.proc == nil {
		return
	}
	select {
	case <-b.ended:
	default:
		syscall.Kill(b.proc.PID, sig) //nolint:errcheck // gone is as good
	}
}

// warning sends the signal of --signal ahead of the time limit, once. Its
// methods are safe for concurrent use.
type warning struct {
	ahead time.Duration
	send  func()

	mu    sync.Mutex
	timer *time.Timer
	over  bool // sent, or called off
}

// newWarning makes the warning of a job whose limit ends at end (Unix seconds;
// 0: never).
func (b *batch) newWarning(end int64) *warning {
	t := b.a.job.Time
	w := &warning{
		ahead: time.Duration(t.SignalBefore) * time.Second,
		send:  func() { b.signal(t.Signal, t.SignalBatch, false) },
		over:  t.Signal == 0,
	}
	w.until(end)
	return w
}

// until moves the end of the limit.
func (w *warning) until(end int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.over || end == 0 {
		return
	}
	w.timer = time.AfterFunc(time.Until(time.Unix(end, 0).Add(-w.ahead)), w.fire)
}

func (w *warning) fire() {
	w.mu.Lock()
	over := w.over
	w.over = true
	w.mu.Unlock()
	if !over {
		w.send()
	}
}

// stop calls the warning off.
func (w *warning) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
