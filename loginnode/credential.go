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

// Times of the credentials.
const (
	identityTimeout = 10 * time.Second
	retryAfter      = 15 * time.Second // when a credential could not be had
	lingerCheck     = 30 * time.Second // whether a user's processes have ended
)

// credentials keeps a credential for each user who has sessions, in a folder
// of the user's. It stays while processes of the user live, so that what runs
// in a tmux goes on working when nobody is connected.
type credentials struct {
	server *Server

	mu     sync.Mutex
	closed bool
	users  map[int]*userCredential // by uid
	wait   sync.WaitGroup
}

// held is a user's credential.
type userCredential struct {
	name     string // the user's
	sessions int
	folder   string
	env      []string
	remove   func()
	first    chan struct{} // closed when the first attempt is over
	stop     context.CancelFunc
	now      chan struct{} // there is a new one
}

// acquire gives a session the user's credential. A cluster that does not
// answer is no reason to keep somebody from the files: the session gets the
// names, and the files come when they can be had.
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
		return nil, fmt.Errorf("the server ends")
	}
	if h := c.users[u.UID]; h != nil {
		if h.name != u.Name {
			return nil, fmt.Errorf("uid %d is that of user %s, who has processes here", u.UID, h.name)
		}
		h.sessions++
		return h, nil
	}
	folder, remove, err := userFolder(c.server.cfg.RunDir, "u"+strconv.Itoa(u.UID), u)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &userCredential{name: u.Name, sessions: 1, folder: folder, remove: remove, first: make(chan struct{}), stop: stop, now: make(chan struct{}, 1)}
	c.users[u.UID] = h
	c.wait.Add(1)
	go func() {
		defer c.wait.Done()
		c.manage(ctx, u, h)
	}()
	return h, nil
}

// keep renews a credential until nobody needs it any more.
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

// renewNow has a user's credential written anew, if there is one.
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

// forget drops a credential that no session and no process needs.
func (c *credentials) removeUnused(u *auth.User, h *userCredential) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.sessions > 0 || hasProcesses(u.UID) {
		return false
	}
	delete(c.users, u.UID)
	h.remove() // under the lock, before the next login makes the folder again
	return true
}

// never is when a credential that does not expire is renewed.
const never = 1000 * time.Hour

// renew asks for a credential, writes it, and returns when to do so again.
func (c *credentials) renew(ctx context.Context, u *auth.User, h *userCredential) (again time.Time) {
	again = time.Now().Add(retryAfter) // after a defect as well
	defer c.server.recoverPanic()
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	cred, err := c.server.cfg.Identity(ctx, u)
	if cred != nil {
		c.setEnv(h, cred)
	}
	if err == nil {
		err = writeCredential(u, h.folder, cred)
	}
	if err != nil {
		c.server.metrics.Add("berth_login_credential_errors_total", 1)
		c.server.cfg.Log.Error("no credential for the cluster", "user", u.Name, "error", err)
		return again
	}
	if cred.Renew.IsZero() {
		return time.Now().Add(never)
	}
	// Never in a tight loop, whatever the answer said.
	if soon := time.Now().Add(time.Second); cred.Renew.Before(soon) {
		return soon
	}
	return cred.Renew
}

// name sets the variables that sessions get.
func (c *credentials) setEnv(h *userCredential, cred *Credential) {
	var env []string
	for _, e := range cred.Env {
		env = append(env, strings.ReplaceAll(e, "%d", h.folder))
	}
	c.mu.Lock()
	h.env = env
	c.mu.Unlock()
}

// writeCredential writes the files as the user, mode 600, each at once.
func writeCredential(u *auth.User, folder string, cred *Credential) error {
	return asuser.Do(u.Rights(), func() error {
		for name, text := range cred.Files {
			final := filepath.Join(folder, name)
			tmp := final + ".new"
			_ = os.Remove(tmp)
			f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = f.WriteString(strings.ReplaceAll(text, "%d", folder))
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

// close ends the keeping and removes the files.
func (c *credentials) close() {
	c.mu.Lock()
	c.closed = true
	for _, h := range c.users {
		h.stop()
	}
	c.mu.Unlock()
	c.wait.Wait()
}

// hasProcesses tells whether a process of the user runs on this machine.
func hasProcesses(uid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true // do not take away what may be in use
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
