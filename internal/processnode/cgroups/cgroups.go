// Package cgroups limits and measures the resources of the containers of a local
// cluster, with control groups of version 1 or 2, as far as this process may write
// them. A machine without one of the controllers runs pods without its limits.
package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const base = "/sys/fs/cgroup"

// controllers are the controllers that are used if they exist.
var controllers = []string{"memory", "cpu", "pids", "freezer"}

// Limits of a group; zero values mean none.
type Limits struct {
	Memory    int64 // bytes
	CPUMillis int64 // thousandths of a CPU, the limit
	CPUShare  int64 // thousandths of a CPU, the weight
}

// Manager creates the groups of a cluster, below one directory of each hierarchy.
type Manager struct {
	unified bool
	dirs    map[string]string // controller -> our directory; unified: one, ""
}

// Open prepares the hierarchies. It removes leftover groups of a crashed owner with the same
// name, and kills their processes. It returns an error if this process cannot use control
// groups at all.
func Open(name string) (*Manager, error) {
	m := locate(name)
	if len(m.dirs) == 0 {
		return nil, errors.New("no control groups are mounted at " + base)
	}
	if m.unified {
		enable(base)
	}
	m.sweep()
	for _, dir := range m.dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("control group: %w", err)
		}
		if m.unified {
			enable(dir)
		}
	}
	return m, nil
}

// Sweep removes the leftover groups of a crashed owner with the given name, and kills their
// processes.
func Sweep(name string) { locate(name).sweep() }

// locate returns a Manager for the given name, without creating any directory.
func locate(name string) *Manager {
	m := &Manager{unified: isUnified(base), dirs: map[string]string{}}
	if m.unified {
		m.dirs[""] = filepath.Join(base, name)
		return m
	}
	for _, c := range controllers {
		if _, err := os.Stat(filepath.Join(base, c)); err == nil {
			m.dirs[c] = filepath.Join(base, c, name)
		}
	}
	return m
}

// Close removes all groups. They should be empty; remaining processes are killed.
func (m *Manager) Close() {
	if m != nil {
		m.sweep()
	}
}

// sweep kills and removes all groups of this name.
func (m *Manager) sweep() {
	for _, dir := range m.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				killAll(filepath.Join(dir, e.Name()))
				remove(filepath.Join(dir, e.Name()))
			}
		}
		remove(dir)
	}
}

func isUnified(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// enable enables the controllers for the groups below dir.
func enable(dir string) {
	for _, c := range controllers {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
}

// killAll kills the processes of a group until it is empty or a second has passed.
func killAll(dir string) {
	for range 100 {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		pids := strings.Fields(string(data))
		if err != nil || len(pids) == 0 {
			return
		}
		for _, p := range pids {
			if pid, err := strconv.Atoi(p); err == nil && pid > 1 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// remove removes the directory of a group. It retries for a while, because the group remains
// busy for a moment after its last process has ended.
func remove(dir string) {
	for range 200 {
		err := unix.Rmdir(dir)
		if !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Group is the control group of one container.
type Group struct {
	unified bool
	dirs    map[string]string
}

// Create creates a group. A nil Manager returns a nil Group, whose methods do nothing.
func (m *Manager) Create(id string, l Limits) (*Group, error) {
	if m == nil {
		return nil, nil
	}
	g := &Group{unified: m.unified, dirs: map[string]string{}}
	for c, dir := range m.dirs {
		dir = filepath.Join(dir, id)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			g.Remove()
			return nil, fmt.Errorf("control group: %w", err)
		}
		g.dirs[c] = dir
	}
	for _, s := range g.settings(l) {
		if dir, ok := g.dirs[s.controller]; ok {
			// A machine may lack one of the files (swap accounting), but have the others.
			_ = os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0)
		}
	}
	return g, nil
}

type setting struct{ controller, file, value string }

const period = 100_000 // microseconds

func (g *Group) settings(l Limits) []setting {
	var s []setting
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	quota := number(max(1000, l.CPUMillis*period/1000))
	shares := max(2, l.CPUShare*1024/1000)
	if g.unified {
		if l.Memory > 0 {
			s = append(s, setting{"", "memory.max", number(l.Memory)}, setting{"", "memory.swap.max", "0"},
				setting{"", "memory.oom.group", "1"})
		}
		if l.CPUMillis > 0 {
			s = append(s, setting{"", "cpu.max", quota + " " + number(period)})
		}
		// Container runtimes map shares (2..262144) to weights (1..10000) in the same way.
		weight := 1 + (min(shares, 262144)-2)*9999/262142
		return append(s, setting{"", "cpu.weight", number(weight)})
	}
	if l.Memory > 0 {
		s = append(s, setting{"memory", "memory.limit_in_bytes", number(l.Memory)},
			setting{"memory", "memory.memsw.limit_in_bytes", number(l.Memory)})
	}
	if l.CPUMillis > 0 {
		s = append(s, setting{"cpu", "cpu.cfs_period_us", number(period)}, setting{"cpu", "cpu.cfs_quota_us", quota})
	}
	return append(s, setting{"cpu", "cpu.shares", number(shares)})
}

// Add moves a process into the group; its children follow.
func (g *Group) Add(pid int) error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	return errors.Join(errs...)
}

// OOMKills returns the number of OOM kills in the group.
func (g *Group) OOMKills() int64 {
	return g.counter("memory.oom_control", "memory.events", "oom_kill")
}

// MemoryUsage returns the current memory usage of the group in bytes, or 0 if it is unknown.
func (g *Group) MemoryUsage() int64 {
	return g.counter("memory.usage_in_bytes", "memory.current", "")
}

// counter returns the number after key in a file, or the only number if key is empty. The
// file's name is v1 or v2, depending on the version of the hierarchy.
func (g *Group) counter(v1, v2, key string) int64 {
	if g == nil {
		return 0
	}
	file := filepath.Join(g.dirs["memory"], v1)
	if g.unified {
		file = filepath.Join(g.dirs[""], v2)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	words := strings.Fields(string(data))
	i := 0
	if key != "" {
		i = slices.Index(words, key) + 1
	}
	if i >= len(words) || key != "" && i == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(words[i], 10, 64)
	return n
}

// Kill kills the remaining processes of the group.
func (g *Group) Kill() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		killAll(dir)
	}
}

// Remove removes the group, which must be empty.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		remove(dir)
	}
}

// Available reports whether this process can create control groups.
func Available() bool {
	dir := base
	if !isUnified(base) {
		dir = filepath.Join(base, "memory")
	}
	return unix.Access(dir, unix.W_OK) == nil
}
