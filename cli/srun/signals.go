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
// the tasks are; a second one soon after goes to the tasks and ends the step.
func (s *steps) obey(signals <-chan os.Signal, over <-chan struct{}) {
	var last time.Time
	for {
		select {
		case <-over:
			return
		case got := <-signals:
			sig, ok := got.(syscall.Signal)
			if !ok {
				continue
			}
			if sig != syscall.SIGINT {
				s.other(sig)
				continue
			}
			now := s.o.p.Now()
			again := now.Sub(last) <= twice
			last = now
			s.interrupt(again)
		}
	}
}

// interrupt handles a Ctrl-C; again: it is not the first.
func (s *steps) interrupt(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lead := s.parts[0]
	st := lead.parsed.Step
	switch {
	case !s.joined:
		s.hangUp(syscall.SIGINT)
	case st.QuitOnInterrupt || again:
		s.sayInterrupt()
		if s.forced {
			lead.info("job abort in progress")
			return
		}
		lead.info("forcing job termination")
		s.aborted = true
		s.force(step.Signal{Signal: int32(syscall.SIGINT)})
	case st.DisableStatus:
		s.sayInterrupt()
		s.pass(syscall.SIGINT)
	default:
		lead.info("interrupt (one more within 1 sec to abort)")
		for _, r := range s.parts {
			r.status()
		}
	}
}

func (s *steps) sayInterrupt() {
	for _, r := range s.parts {
		r.info("sending Ctrl-C to StepId=%s", r.id())
	}
}

// other handles the other signals.
func (s *steps) other(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lead := s.parts[0]
	switch {
	case sig == syscall.SIGCONT:
		lead.info("got SIGCONT")
	case sig == syscall.SIGWINCH:
		for _, r := range s.parts {
			r.resized()
		}
	case sig == syscall.SIGPIPE:
	case !s.joined:
		if sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT {
			s.hangUp(sig)
		}
	case sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT:
		if sig == syscall.SIGQUIT {
			lead.info("Quit")
		}
		lead.info("forcing job termination")
		s.force()
	default:
		s.pass(sig)
	}
}

// pass sends a signal to the tasks. s.mu is held; see end.
func (s *steps) pass(sig syscall.Signal) {
	for _, r := range s.parts {
		go r.conn.SendJSON(step.FrameSignal, step.Signal{Signal: int32(sig)}) //nolint:errcheck // the reader sees it
	}
}

// force has all parts killed at once, after they were sent the signals before,
// if any. s.mu is held.
func (s *steps) force(before ...step.Signal) {
	s.forced = true
	list := append(before, step.Signal{Signal: int32(syscall.SIGKILL), Terminate: true})
	for _, r := range s.parts {
		r.ending = true
		go func() {
			for _, sig := range list {
				r.conn.SendJSON(step.FrameSignal, sig) //nolint:errcheck // the reader sees it
			}
		}()
	}
}

// hangUp gives the parts up that wait for their place. s.mu is held.
func (s *steps) hangUp(sig syscall.Signal) {
	s.givenUp = true
	s.parts[0].info("Cancelled pending job step with signal %d", int(sig))
	for _, r := range s.parts {
		r.conn.Close()
	}
}
