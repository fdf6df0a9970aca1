package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Cgroups gives each user a cgroup (version 2) of its own below Parent, which
// must be delegated to the server: all sessions of a user share its limits. It
// is safe for concurrent use.
type Cgroups struct {
	Parent string
	// CPU, Memory and PIDs are written to cpu.max, memory.max and pids.max; "":
	// no limit.
	CPU, Memory, PIDs string

	mu    sync.Mutex
	users map[int]int // sessions by uid
}

// Place is a Config's Place.
func (c *Cgroups) Place(u *auth.User) (int, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir := filepath.Join(c.Parent, "user-"+strconv.Itoa(u.UID))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, nil, err
	}
	for file, value := range map[string]string{"cpu.max": c.CPU, "memory.max": c.Memory, "pids.max": c.PIDs} {
		if value == "" {
			continue
		}
		// No O_CREATE: a controller that is not there must not pass unnoticed.
		if err := writeFile(filepath.Join(dir, file), value); err != nil {
			return -1, nil, fmt.Errorf("cgroup of %s: %w", u.Name, err)
		}
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	if c.users == nil {
		c.users = map[int]int{}
	}
	c.users[u.UID]++
	return fd, func() { c.leave(u.UID, dir, fd) }, nil
}

func (c *Cgroups) leave(uid int, dir string, fd int) {
	unix.Close(fd)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users[uid]--; c.users[uid] == 0 {
		delete(c.users, uid)
		_ = os.Remove(dir) // fails while processes live on in it, which is right
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
