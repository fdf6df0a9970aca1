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

// firstCommandsDelay is the time after the start of a script at which commands are
// first requested. A script that has ended by then causes no request.
const firstCommandsDelay = 20 * time.Millisecond

// handleCommands executes the commands of the API role until ctx is cancelled.
func (b *batch) handleCommands(ctx context.Context) {
	select {
	case <-time.After(firstCommandsDelay):
	case <-ctx.Done():
	}
	seq := int64(0)
	for ctx.Err() == nil {
		items, err := b.a.api.Commands(ctx, seq)
		var final *apiclient.FinalError
		switch {
		case errors.As(err, &final) && (final.Code == http.StatusGone || final.Code == http.StatusNotFound):
			// The cluster has ended this run of the job.
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
				b.handleCommand(&items[i])
			}
		}
	}
}

func (b *batch) handleCommand(c *wire.Command) {
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
		b.a.clients.hungUp(c.Client)
	case wire.CommandLimit:
		if len(c.Steps) > 0 {
			b.a.coord.SetTimeLimit(c.Minutes, c.Steps...)
			return
		}
		b.warning.setEnd(c.EndTime)
	case wire.CommandNotify:
		b.files.writeLine("slurmstepd: error: " + c.Text)
	}
}

// signal sends a signal as scancel(1) describes: to the batch shell only (shell), to the
// script and the steps (full), or to the steps.
func (b *batch) signal(sig int32, shell, full bool) {
	switch {
	case shell && !full:
		b.signalShell(syscall.Signal(sig))
	case full:
		b.signalSession(syscall.Signal(sig))
		b.a.coord.Signal(sig)
	default:
		b.a.coord.Signal(sig)
	}
}

func (b *batch) signalShell(sig syscall.Signal) {
	if b.proc == nil {
		return
	}
	select {
	case <-b.ended:
	default:
		syscall.Kill(b.proc.PID, sig) //nolint:errcheck // it may have ended
	}
}

// warning sends the signal of --signal before the end of the time limit, once. Its
// methods are safe for concurrent use.
type warning struct {
	ahead time.Duration
	send  func()

	mu    sync.Mutex
	timer *time.Timer
	over  bool // sent or stopped
}

// newWarning returns the warning of a job whose time limit ends at end (Unix
// seconds; 0: never).
func (b *batch) newWarning(end int64) *warning {
	t := b.a.job.Time
	w := &warning{
		ahead: time.Duration(t.SignalBefore) * time.Second,
		send:  func() { b.signal(t.Signal, t.SignalBatch, false) },
		over:  t.Signal == 0,
	}
	w.setEnd(end)
	return w
}

// setEnd changes the end of the time limit.
func (w *warning) setEnd(end int64) {
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

// stop prevents the warning.
func (w *warning) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
