package loginnode

import (
	"context"
	"time"

	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// revokeInterval is how often the users who are logged in are checked.
const revokeInterval = time.Second

// watchRevoked ends what users have here who may no longer log in, until the server closes.
func (s *Server) watchRevoked() {
	defer s.wait.Done()
	tick := time.NewTicker(revokeInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			s.endRevoked()
		}
	}
}

// endRevoked closes the connections of revoked users, and ends their pods and processes.
func (s *Server) endRevoked() {
	defer s.recoverPanic()
	for _, u := range s.present() {
		if !s.cfg.Revoked(u) {
			continue
		}
		s.audit.Write(audit.Record{Event: "revoked", User: u.Name, UID: &u.UID})
		s.cfg.Log.Warn("the sessions of a user were ended: the user may no longer log in", "user", u.Name)
		s.closeConnections(u.Name)
		if s.pods != nil {
			s.pods.revoke(u.Name)
		}
		if s.cfg.EndProcesses == nil {
			continue
		}
		if err := s.cfg.EndProcesses(u); err != nil {
			s.cfg.Log.Error("processes of a user may remain", "user", u.Name, "error", err)
		}
	}
}

// present returns the users who have connections or pods, by name.
func (s *Server) present() map[string]*auth.User {
	users := map[string]*auth.User{}
	if s.pods != nil {
		s.pods.addUsers(users)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		users[c.login.User.Name] = c.login.User
	}
	return users
}

// closeConnections closes the connections of a user. Their sessions get SIGHUP.
func (s *Server) closeConnections(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.login.User.Name == user {
			_ = c.Close()
		}
	}
}

// addUsers adds the users who have pods that run.
func (k *podManager) addUsers(users map[string]*auth.User) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, e := range k.managed {
		select {
		case <-e.ready:
			if e.pod != nil {
				users[name] = &auth.User{Name: name, UID: e.pod.UID}
			}
		default:
		}
	}
}

// revoke deletes the pod of a user, if it runs.
func (k *podManager) revoke(user string) {
	k.mu.Lock()
	e := k.managed[user]
	k.mu.Unlock()
	if e == nil {
		return
	}
	select {
	case <-e.ready:
	default:
		return // it is started, and found by a later check
	}
	if e.pod == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), identityTimeout)
	defer cancel()
	if err := k.pods.Remove(ctx, e.pod.Name); err != nil {
		k.server.cfg.Log.Error("the pod of a user cannot be removed", "pod", e.pod.Name, "error", err)
	}
}
