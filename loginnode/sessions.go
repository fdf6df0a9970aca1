package loginnode

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/audit"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/metrics"
	"github.com/berth-hpc/berth/loginnode/session"
)

// setSessionEvents connects the events of sessions to log, audit and metrics, and
// provides sessions with agents and credentials.
func (s *Server) setSessionEvents() {
	owner := func(one *session.Session) *conn { return one.Conn.Owner.(*conn) }
	s.session.Events = session.Events{
		Started: func(one *session.Session) {
			s.sessionStarted(one, one.Kind, s.sessionRecord(owner(one), one, "session-start"))
		},
		Ended: func(one *session.Session, end session.End) {
			s.mu.Lock()
			began := s.activeSessions[one]
			s.mu.Unlock()
			r := s.sessionRecord(owner(one), one, "session-end")
			r.BytesIn, r.BytesOut, r.Signal = end.BytesIn, end.BytesOut, end.Signal
			r.Seconds = s.cfg.Now().Sub(began).Seconds()
			if end.Exit >= 0 {
				r.Exit = &end.Exit
			}
			s.sessionEnded(one, r)
		},
		Failed: func(one *session.Session, err error) {
			s.metrics.Add("berth_login_session_failures_total", 1)
			r := s.sessionRecord(owner(one), one, "session-failed")
			r.Reason = err.Error()
			s.audit.Write(r)
			s.cfg.Log.Error("a session cannot be started", "user", r.User, "error", err)
		},
		Panicked: s.reportPanic,
	}
	s.session.Agent = s.agent
	if s.cfg.Identity != nil && s.cfg.Pods == nil {
		inner := s.session.Prepare
		s.session.Prepare = func(ctx context.Context, l *auth.Login) ([]string, func(), error) {
			env, done, err := s.credentials.acquire(ctx, l.User)
			if err != nil || inner == nil {
				return env, done, err
			}
			more, also, err := inner(ctx, l)
			return append(env, more...), func() { callIfSet(also); done() }, err
		}
	}
}

// notifier is a session that can show a message, here or in a pod.
type notifier interface{ Say(text string) }

func (s *Server) sessionStarted(one notifier, kind string, r audit.Record) {
	now := s.cfg.Now()
	s.mu.Lock()
	s.activeSessions[one] = now
	s.mu.Unlock()
	s.metrics.Add("berth_login_sessions", 1)
	s.metrics.Add(metrics.Label("berth_login_sessions_total", "kind", kind), 1)
	s.audit.Write(r)
}

func (s *Server) sessionEnded(one notifier, r audit.Record) {
	s.mu.Lock()
	_, began := s.activeSessions[one]
	delete(s.activeSessions, one)
	s.mu.Unlock()
	if began {
		s.metrics.Add("berth_login_sessions", -1)
	}
	s.audit.Write(r)
}

func callIfSet(f func()) {
	if f != nil {
		f()
	}
}

func (s *Server) sessionRecord(c *conn, one *session.Session, event string) audit.Record {
	r := c.record(event)
	r.Kind, r.Command, r.Forced, r.TTY = one.Kind, one.Command, one.Forced, one.TTY
	return r
}

// agent creates a socket for the client's agent in a directory for one session.
func (s *Server) agent(_ context.Context, l *auth.Login, c ssh.Conn) (string, func(), error) {
	s.mu.Lock()
	var own *conn
	for k := range s.conns {
		if k.ssh == c {
			own = k
		}
	}
	s.mu.Unlock()
	if own == nil {
		return "", nil, errors.New("the connection has ended")
	}
	if own.outer != nil {
		return "", nil, errors.New("a socket on this machine cannot be reached from a node")
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	directory, remove, err := userDir(s.cfg.RunDir, "a"+hex.EncodeToString(id[:]), l.User)
	if err != nil {
		return "", nil, err
	}
	socket, done, err := own.forward.Agent(directory)
	if err != nil {
		remove()
		return "", nil, err
	}
	return socket, func() { done(); remove() }, nil
}

// makeRunDir creates the directory for the directories of users. The server must own it, or
// somebody else could replace what is in it.
func makeRunDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	// One descriptor for all checks, so that the directory cannot be replaced meanwhile.
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s is not a directory of the server's own: %w", dir, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory of the server's own: it belongs to uid %d", dir, st.Uid)
	}
	if err := unix.Fchmod(fd, 0o711); err != nil {
		return fmt.Errorf("%s: chmod: %w", dir, err)
	}
	return nil
}

// inMemory reports whether the files of a directory are never written to a disk.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

// userDir creates a directory that only the user can enter, or reuses that of an
// earlier server.
func userDir(run, name string, u *auth.User) (string, func(), error) {
	directory := filepath.Join(run, name)
	remove := func() {
		_ = asuser.Do(u.Rights(), func() error { return removeContents(directory) })
		_ = os.Remove(directory)
	}
	if err := os.Mkdir(directory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(directory, u.UID, u.GID); err != nil {
			remove()
			return "", nil, err
		}
	}
	return directory, remove, nil
}

// removeContents removes everything in a directory.
func removeContents(directory string) error {
	entries, err := os.ReadDir(directory)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(directory, e.Name())))
	}
	return err
}
