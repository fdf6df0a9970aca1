package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// serverGroup is the group of the server itself if Parent was its own group.
const serverGroup = "server"

// Ready prepares Parent for Place, or returns why it cannot: it creates the group if it
// does not exist and enables the controllers that the limits need. A group with
// processes cannot enable any, so the processes in Parent (this server and its parent)
// move to a group below. Ready tries the limits on a temporary group, and removes empty
// groups of an earlier server.
func (c *Cgroups) Ready() error {
	if err := os.MkdirAll(c.Parent, 0o755); err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(c.Parent, &st); err != nil {
		return fmt.Errorf("%s: %w", c.Parent, err)
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s is not in a cgroup2 file system", c.Parent)
	}
	if err := c.enableControllers(); err != nil {
		return err
	}
	earlier, _ := filepath.Glob(filepath.Join(c.Parent, "user-*"))
	for _, dir := range earlier {
		_ = os.Remove(dir)
	}
	probe := filepath.Join(c.Parent, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := c.limit(probe)
	return errors.Join(err, os.Remove(probe))
}

// enableControllers enables the controllers for the children of Parent.
func (c *Cgroups) enableControllers() error {
	available, err := words(filepath.Join(c.Parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := words(filepath.Join(c.Parent, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	var want, missing []string
	for file := range c.limits() {
		controller, _, _ := strings.Cut(file, ".")
		switch {
		case slices.Contains(enabled, controller):
		case slices.Contains(available, controller):
			want = append(want, "+"+controller)
		default:
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf(
			"%s has no controller %s: it is not delegated, or in a hierarchy of version 1",
			c.Parent,
			strings.Join(missing, ", "),
		)
	}
	if err := c.moveAway(); err != nil || len(want) == 0 {
		return err
	}
	return writeFile(filepath.Join(c.Parent, "cgroup.subtree_control"), strings.Join(want, " "))
}

// moveAway moves the processes in Parent to a group below. Only the root group may have
// both processes and controllers for its children.
func (c *Cgroups) moveAway() error {
	if _, err := os.Stat(
		filepath.Join(c.Parent, "cgroup.type"),
	); errors.Is(err, fs.ErrNotExist) ||
		len(c.limits()) == 0 {
		return nil
	}
	to := filepath.Join(c.Parent, serverGroup)
	// Several times, because a process may fork while it moves.
	for range 10 {
		pids, err := words(filepath.Join(c.Parent, "cgroup.procs"))
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		for _, pid := range pids {
			err := writeFile(filepath.Join(to, "cgroup.procs"), pid)
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return fmt.Errorf("process %s: %w", pid, err)
			}
		}
	}
	return fmt.Errorf("new processes keep appearing in %s itself", c.Parent)
}

// words returns the words in a file.
func words(name string) ([]string, error) {
	data, err := os.ReadFile(name)
	return strings.Fields(string(data)), err
}
