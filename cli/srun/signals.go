package srun

import (
	"os"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// doubleInterval is the time within which a second Ctrl-C ends the step (srun(1),
// SIGNALS).
const doubleInterval = time.Second

// handleSignals handles signals to srun until over is closed. The first Ctrl-C
// prints the status of the tasks; a second one soon after is sent to the tasks and
// ends the step.
func (s *steps) handleSignals(signals <-chan os.Signal, over <-chan struct{}) {
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
				s.handleSignal(sig)
				continue
			}
			now := s.o.p.Now()
			again := now.Sub(last) <= doubleInterval
			last = now
			s.interrupt(again)
		}
	}
}

// interrupt handles a Ctrl-C. again is true if it follows another one.
func (s *steps) interrupt(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lead := s.parts[0]
	st := lead.parsed.Step
	switch {
	case !s.joined:
		s.cancelPending(syscall.SIGINT)
	case st.QuitOnInterrupt || again:
		s.reportInterrupt()
		if s.killing {
			lead.info("job abort in progress")
			return
		}
		lead.info("forcing job termination")
		s.aborted = true
		s.kill(step.Signal{Signal: int32(syscall.SIGINT)})
	case st.DisableStatus:
		s.reportInterrupt()
		s.forward(syscall.SIGINT)
	default:
		lead.info("interrupt (one more within 1 sec to abort)")
		for _, r := range s.parts {
			r.printStatus()
		}
	}
}

// reportInterrupt reports that SIGINT is sent to the tasks.
func (s *steps) reportInterrupt() {
	for _, r := range s.parts {
		r.info("sending Ctrl-C to StepId=%s", r.id())
	}
}

// handleSignal handles signals other than SIGINT.
func (s *steps) handleSignal(sig syscall.Signal) {
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
			s.cancelPending(sig)
		}
	case sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT:
		if sig == syscall.SIGQUIT {
			lead.info("Quit")
		}
		lead.info("forcing job termination")
		s.kill()
	default:
		s.forward(sig)
	}
}

// forward sends a signal to the tasks. The caller holds s.mu; see run.terminate.
func (s *steps) forward(sig syscall.Signal) {
	for _, r := range s.parts {
		go r.conn.SendJSON(step.FrameSignal, step.Signal{Signal: int32(sig)}) //nolint:errcheck // the reader sees it
	}
}

// kill kills all parts, after it has sent them the given signals. The caller holds
// s.mu.
func (s *steps) kill(before ...step.Signal) {
	s.killing = true
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

// cancelPending gives up parts that were not created yet. The caller holds s.mu.
func (s *steps) cancelPending(sig syscall.Signal) {
	s.canceled = true
	s.parts[0].info("Cancelled pending job step with signal %d", int(sig))
	for _, r := range s.parts {
		r.conn.Close()
	}
}
