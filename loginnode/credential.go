package loginnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

const (
	identityTimeout = 10 * time.Second // of one call of Identity
	retryAfter      = 15 * time.Second // after a failed call
	lingerCheck     = 30 * time.Second // interval of checks whether a user's processes have ended
)

// credentials manages a credential for each user who has sessions, in a directory of the
// user. The credential exists as long as the user has processes, so that programs in a
// tmux work without a connection.
type credentials struct {
	server *Server

	mu     sync.Mutex
	closed bool
	users  map[int]*userCredential // by uid
	wait   sync.WaitGroup
}

// userCredential is a user's credential.
type userCredential struct {
	name      string // the user's
	sessions  int
	directory string
	env       []string
	remove    func()
	first     chan struct{} // closed when the first attempt is over
	stop      context.CancelFunc
	now       chan struct{} // there is a new one
}

// acquire returns the environment of the user's credential for a session. A session
// starts also if the cluster does not answer: it gets the names of the files, which
// are written when a retry succeeds.
func (c *credentials) acquire(ctx context.Context, u *auth.User) ([]string, func(), error) {
	h, err := c.get(u)
	if err != nil {
		return nil, nil, err
	}
	done := func() {
		c.mu.Lock()
		h.sessions--
		c.mu.Unlock()
	}
	select {
	case <-h.first:
	case <-ctx.Done():
		return nil, done, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.env, done, nil
}

func (c *credentials) get(u *auth.User) (*userCredential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the server is shutting down")
	}
	if h := c.users[u.UID]; h != nil {
		if h.name != u.Name {
			return nil, fmt.Errorf("uid %d is that of user %s, who has processes here", u.UID, h.name)
		}
		h.sessions++
		return h, nil
	}
	directory, remove, err := userDir(c.server.cfg.RunDir, "u"+strconv.Itoa(u.UID), u)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &userCredential{
		name: u.Name, sessions: 1, directory: directory, remove: remove,
		first: make(chan struct{}), stop: stop, now: make(chan struct{}, 1),
	}
	c.users[u.UID] = h
	c.wait.Add(1)
	go func() {
		defer c.wait.Done()
		c.manage(ctx, u, h)
	}()
	return h, nil
}

// manage renews a credential until it is no longer needed.
func (c *credentials) manage(ctx context.Context, u *auth.User, h *userCredential) {
	renew := c.renew(ctx, u, h)
	close(h.first)
	tick := time.NewTicker(lingerCheck)
	defer tick.Stop()
	for {
		next := time.NewTimer(time.Until(renew))
		select {
		case <-ctx.Done():
			next.Stop()
			h.remove()
			return
		case <-next.C:
			renew = c.renew(ctx, u, h)
		case <-h.now:
			next.Stop()
			renew = c.renew(ctx, u, h)
		case <-tick.C:
			next.Stop()
			if c.removeUnused(u, h) {
				return
			}
		}
	}
}

// renewNow renews a user's credential now, if there is one.
func (c *credentials) renewNow(uid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.users[uid]; h != nil {
		select {
		case h.now <- struct{}{}:
		default:
		}
	}
}

// removeUnused removes a credential that no session and no process needs.
func (c *credentials) removeUnused(u *auth.User, h *userCredential) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.sessions > 0 || hasProcesses(u.UID) {
		return false
	}
	delete(c.users, u.UID)
	h.remove() // under the lock, before the next login makes the directory again
	return true
}

// never is the time until the renewal of a credential that does not expire.
const never = 1000 * time.Hour

// renew issues and writes a credential, and returns when to do so again.
func (c *credentials) renew(ctx context.Context, u *auth.User, h *userCredential) (again time.Time) {
	again = time.Now().Add(retryAfter) // also after a panic
	defer c.server.recoverPanic()
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	cred, err := c.server.cfg.Identity(ctx, u)
	if cred != nil {
		c.setEnv(h, cred)
	}
	if err == nil {
		err = writeCredential(u, h.directory, cred)
	}
	if err != nil {
		c.server.metrics.Add("berth_login_credential_errors_total", 1)
		c.server.cfg.Log.Error("no credential for the cluster", "user", u.Name, "error", err)
		return again
	}
	if cred.Renew.IsZero() {
		return time.Now().Add(never)
	}
	// At most once a second, whatever Renew says.
	if soon := time.Now().Add(time.Second); cred.Renew.Before(soon) {
		return soon
	}
	return cred.Renew
}

// setEnv sets the environment for sessions.
func (c *credentials) setEnv(h *userCredential, cred *Credential) {
	var env []string
	for _, e := range cred.Env {
		env = append(env, strings.ReplaceAll(e, "%d", h.directory))
	}
	c.mu.Lock()
	h.env = env
	c.mu.Unlock()
}

// writeCredential writes the files as the user, with mode 600, each atomically.
func writeCredential(u *auth.User, directory string, cred *Credential) error {
	return asuser.Do(u.Rights(), func() error {
		for name, text := range cred.Files {
			final := filepath.Join(directory, name)
			tmp := final + ".new"
			_ = os.Remove(tmp)
			f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = f.WriteString(strings.ReplaceAll(text, "%d", directory))
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err == nil {
				err = os.Rename(tmp, final)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// close stops all renewals and removes the files.
func (c *credentials) close() {
	c.mu.Lock()
	c.closed = true
	for _, h := range c.users {
		h.stop()
	}
	c.mu.Unlock()
	c.wait.Wait()
}

// hasProcesses reports whether the user has processes on this machine.
func hasProcesses(uid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true // the credential may be in use
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+e.Name(), &st) == nil && int(st.Uid) == uid {
			return true
		}
	}
	return false
}
