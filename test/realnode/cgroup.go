package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// nodeNames are the names of the nodes.
var nodeNames = []string{"n1", "n2", "n3"}

// makeCgroups creates a control group for each node, in each hierarchy: a kubelet
// requires its root to exist, and a version 1 cpuset to be filled.
func makeCgroups(site string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		for _, path := range append([]string{site}, nodeGroups(site)...) {
			if err := os.Mkdir(filepath.Join(h, path), 0o755); err != nil {
				return err
			}
			if err := fillCgroup(h, filepath.Join(h, path)); err != nil {
				return fmt.Errorf("control group %s: %w", path, err)
			}
		}
	}
	return nil
}

func nodeGroups(site string) []string {
	var groups []string
	for _, n := range nodeNames {
		groups = append(groups, filepath.Join(site, n))
	}
	return groups
}

// fillCgroup makes a new group usable. Version 1: a child's cpuset is empty at first.
// Version 2: the parent must enable its controllers for children.
func fillCgroup(hierarchy, path string) error {
	parent := filepath.Dir(path)
	if filepath.Base(hierarchy) == "cpuset" {
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := copyFile(filepath.Join(parent, f), filepath.Join(path, f)); err != nil {
				return err
			}
		}
	}
	if hierarchy != cgroupRoot {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// hierarchies returns the mount points of control groups: the one of version
// 2, or those of version 1 (without links such as cpu,cpuacct's).
func hierarchies() ([]string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &st); err != nil {
		return nil, err
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, filepath.Join(cgroupRoot, e.Name()))
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups at " + cgroupRoot)
	}
	return found, nil
}

// removeCgroups removes the site's groups in every hierarchy. It retries until their
// processes have exited or the time is over.
func removeCgroups(site string, limit time.Duration) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(limit)
	for {
		var errs []error
		for _, h := range hierarchies {
			errs = append(errs, removeGroup(filepath.Join(h, site)))
		}
		err := errors.Join(errs...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// removeGroup removes a group and those below it, innermost first.
func removeGroup(path string) error {
	var groups []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			groups = append(groups, p)
		}
		return err
	})
	for _, g := range slices.Backward(groups) {
		if e := os.Remove(g); e != nil && !errors.Is(e, fs.ErrNotExist) {
			return e
		}
	}
	return err
}
