package srun

import (
	"os"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// twice is the time within which a second Ctrl-C counts (srun(1), SIGNALS).
const twice = time.Second

// obey handles srun's signals until over is closed. The first Ctrl-C tells how
// the tasks are, a second one soon after goes to the tasks, a third ends the
// step.
func (r *run) obey(signals <-chan os.Signal, over <-chan struct{}) {
	var last time.Time
	sent := false
	for {
		select {
		case <-over:
			return
		case s := <-signals:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if sig != syscall.SIGINT {
				r.other(sig)
				continue
			}
			now := r.o.p.Now()
			again := now.Sub(last) <= twice
			last = now
			sent = r.interrupt(again, sent)
		}
	}
}

// interrupt handles a Ctrl-C; it returns whether one was passed on.
func (r *run) interrupt(again, sent bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.parsed.Step
	switch {
	case r.created == nil:
		r.conn.Close() // it does not wait any longer
		r.o.say("error: Cancelled pending job step with signal %d", int(syscall.SIGINT))
	case st.QuitOnInterrupt || (again && sent):
		r.info("forcing job termination")
		r.end()
	case st.DisableStatus || again:
		r.info("sending Ctrl-C to StepId=%s", r.id())
		r.pass(syscall.SIGINT)
		return true
	default:
		r.info("interrupt (one more within 1 sec to abort)")
		r.status()
	}
	return false
}

// other handles the other signals.
func (r *run) other(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case sig == syscall.SIGCONT:
		r.info("got SIGCONT")
	case sig == syscall.SIGWINCH:
		r.resized()
	case sig == syscall.SIGPIPE:
	case r.created == nil:
		if sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT {
			r.conn.Close()
		}
	case sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT:
		r.info("forcing job termination")
		r.end()
	default:
		r.pass(sig)
	}
}

// pass sends a signal to the tasks. r.mu is held; see end.
func (r *run) pass(sig syscall.Signal) {
	go r.conn.SendJSON(step.FrameSignal, step.Signal{Signal: int32(sig)}) //nolint:errcheck // the reader sees it
}
