package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Cgroups creates a cgroup (version 2) for each user below Parent, which must be
// delegated to the server. All sessions of a user share its limits. Call Ready first.
// Cgroups is safe for concurrent use.
type Cgroups struct {
	Parent string
	// CPU, Memory and PIDs are written to cpu.max, memory.max and pids.max; "":
	// no limit.
	CPU, Memory, PIDs string

	mu     sync.Mutex
	users  map[int]int // sessions by uid
	left   map[int]bool
	sweeps bool // sweep will be called
}

// sweepEvery is the interval of checks whether the last process of a user without
// sessions has ended.
const sweepEvery = 30 * time.Second

// limits returns the files of a user's group and their contents.
func (c *Cgroups) limits() map[string]string {
	all := map[string]string{"cpu.max": c.CPU, "memory.max": c.Memory, "pids.max": c.PIDs}
	for file, value := range all {
		if value == "" {
			delete(all, file)
		}
	}
	return all
}

// dir returns the directory of the user's group.
func (c *Cgroups) dir(uid int) string { return filepath.Join(c.Parent, "user-"+strconv.Itoa(uid)) }

// Place is a Config's Place.
func (c *Cgroups) Place(u *auth.User) (int, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := c.dir(u.UID)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, nil, err
	}
	if err := c.limit(dir); err != nil {
		return -1, nil, fmt.Errorf("cgroup of %s: %w", u.Name, err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	if c.users == nil {
		c.users, c.left = map[int]int{}, map[int]bool{}
	}
	c.users[u.UID]++
	delete(c.left, u.UID)
	return fd, func() { c.leave(u.UID, fd) }, nil
}

// limit sets the limits of a group.
func (c *Cgroups) limit(dir string) error {
	for file, value := range c.limits() {
		// Without O_CREATE: a missing controller must be an error.
		if err := writeFile(filepath.Join(dir, file), value); err != nil {
			return fmt.Errorf("%q: %w", value, err)
		}
	}
	return nil
}

func (c *Cgroups) leave(uid, fd int) {
	unix.Close(fd)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users[uid]--; c.users[uid] == 0 {
		delete(c.users, uid)
		c.left[uid] = true
		c.remove()
	}
}

// Kill ends all processes of a user.
func (c *Cgroups) Kill(uid int) error {
	err := writeFile(filepath.Join(c.dir(uid), "cgroup.kill"), "1")
	if errors.Is(err, fs.ErrNotExist) { // the user has no group, so no process
		return nil
	}
	return err
}

// remove removes the groups of users without sessions. Removing one with processes
// fails, as it should, and is retried later. c.mu is held.
func (c *Cgroups) remove() {
	for uid := range c.left {
		if err := os.Remove(c.dir(uid)); err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(c.left, uid)
		}
	}
	if len(c.left) > 0 && !c.sweeps {
		c.sweeps = true
		time.AfterFunc(sweepEvery, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sweeps = false
			c.remove()
		})
	}
}

func writeFile(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
