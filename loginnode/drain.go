package loginnode

import (
	"context"
	"os"
	"time"

	"github.com/berth-hpc/berth/loginnode/audit"
)

// Ready tells whether the server takes logins.
func (s *Server) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.draining.Load() && len(s.listeners) > 0
}

// Drain takes no more logins, tells every terminal, and waits until the
// sessions have ended or ctx has; then it closes what is left.
func (s *Server) Drain(ctx context.Context, message string) {
	s.draining.Store(true)
	s.metrics.Add("berth_login_draining", 1)
	s.audit.Write(audit.Record{Event: "drain"})
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	// Who is still logging in is too late; who has no session keeps nobody.
	for c := range s.open {
		if !s.conns[c] || c.sessions.Load()+c.carried.Load() == 0 {
			_ = c.Close()
		}
	}
	for one := range s.activeSessions {
		go one.Say(message)
	}
	s.mu.Unlock()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for s.sessions() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.Close()
}

func (s *Server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.activeSessions)
}

// Close ends everything at once and waits until it is over.
func (s *Server) Close() {
	s.draining.Store(true)
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
	if s.pods != nil {
		s.pods.close()
	}
	s.credentials.close()
	_ = os.Remove(s.cfg.RunDir) // if nobody's is left in it
}
