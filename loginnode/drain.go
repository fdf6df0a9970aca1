package loginnode

import (
	"context"
	"os"
	"time"

	"github.com/berth-hpc/berth/loginnode/audit"
)

// Ready reports whether the server accepts logins.
func (s *Server) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.draining.Load() && len(s.listeners) > 0
}

// Drain stops accepting logins, sends the message to every terminal, waits until all
// sessions have ended or ctx is done, and then closes what is left.
func (s *Server) Drain(ctx context.Context, message string) {
	s.draining.Store(true)
	s.metrics.Add("berth_login_draining", 1)
	s.audit.Write(audit.Record{Event: "drain"})
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
		delete(s.listeners, l)
	}
	// Connections that have not logged in, or have no session, end now.
	for c := range s.open {
		if !s.conns[c] || c.sessions.Load()+c.carried.Load() == 0 {
			_ = c.Close()
		}
	}
	for session := range s.activeSessions {
		go session.Say(message)
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

// Close ends all connections at once and waits for them.
func (s *Server) Close() {
	s.draining.Store(true)
	s.closeOnce.Do(func() { close(s.closing) })
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
	_ = os.Remove(s.cfg.RunDir) // fails if a user's directory is left in it
}
