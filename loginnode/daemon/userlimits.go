package daemon

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/session"
)

// The defaults of userProcesses and userMemory. A percentage of the processes is at most
// mostProcesses, because a fork bomb of more would use memory that everybody needs.
const (
	defaultProcesses = "25%"
	defaultMemory    = "50%"
	mostProcesses    = 1024
)

// unlimited is the text that means no limit.
const unlimited = "unlimited"

// capacity is the capacity of the pod, or else of the machine.
type capacity struct{ processes, memory uint64 }

// userLimits are the limits of one user: processes in total, and memory, which the
// kernel counts per process if there is no cgroup. math.MaxUint64 is no limit.
type userLimits struct{ processes, memory uint64 }

// userLimits parses the limits in the file; c is the capacity for percentages.
func (f *File) userLimits(c capacity) (userLimits, error) {
	p, err := share(or(f.UserProcesses, defaultProcesses), c.processes, mostProcesses)
	if err != nil {
		return userLimits{}, fmt.Errorf("userProcesses: %w", err)
	}
	m, err := share(or(f.UserMemory, defaultMemory), c.memory, math.MaxUint64)
	if err != nil {
		return userLimits{}, fmt.Errorf("userMemory: %w", err)
	}
	return userLimits{processes: p, memory: m}, nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// share parses a limit: an amount, a percentage of all such as 25%, limited by most, or
// unlimited.
func share(text string, all, most uint64) (uint64, error) {
	percent, is := strings.CutSuffix(text, "%")
	switch {
	case text == unlimited:
		return math.MaxUint64, nil
	case !is:
		n, err := amount(text)
		if err == nil && n == 0 {
			err = fmt.Errorf("%q would let nobody log in", text)
		}
		return n, err
	}
	n, err := strconv.ParseUint(percent, 10, 8)
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("%q is not a percentage from 1%% to 100%%", text)
	}
	return max(1, min(most, all/100*n)), nil
}

// rlimits returns them as resource limits, within those of the server itself, which it
// cannot raise. A server that is not root serves its own uid only, whose other
// processes would count as well: it gets no limit of processes.
func (l userLimits) rlimits(root bool) []session.Limit {
	var out []session.Limit
	for _, one := range []struct {
		resource int
		value    uint64
		use      bool
	}{{unix.RLIMIT_NPROC, l.processes, root}, {unix.RLIMIT_DATA, l.memory, true}} {
		var own unix.Rlimit
		if !one.use || one.value == math.MaxUint64 || unix.Getrlimit(one.resource, &own) != nil {
			continue
		}
		n := min(one.value, own.Max)
		out = append(out, session.Limit{Resource: one.resource, Soft: n, Hard: n})
	}
	return out
}

// fill sets the limits of cgroups that the file does not.
func (l userLimits) fill(g *Cgroup) {
	if g.PIDs == "" && l.processes != math.MaxUint64 {
		g.PIDs = strconv.FormatUint(l.processes, 10)
	}
	if g.Memory == "" && l.memory != math.MaxUint64 {
		g.Memory = strconv.FormatUint(l.memory, 10)
	}
}

// missing returns those limits of list whose resource is not in have.
func missing(list, have []session.Limit) []session.Limit {
	return slices.DeleteFunc(slices.Clone(list), func(l session.Limit) bool {
		return slices.ContainsFunc(have, func(h session.Limit) bool { return h.Resource == l.Resource })
	})
}

// readCapacity returns the capacity of this container: the minimum of its cgroup's
// limits and the machine's. root is "/", or that of a test.
func readCapacity(root string) capacity {
	c := capacity{processes: math.MaxUint64, memory: math.MaxUint64}
	for _, name := range []string{
		"sys/fs/cgroup/pids.max", "sys/fs/cgroup/pids/pids.max", "proc/sys/kernel/pid_max",
		"proc/sys/kernel/threads-max",
	} {
		c.processes = min(c.processes, readNumber(filepath.Join(root, name)))
	}
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		c.memory = min(c.memory, readNumber(filepath.Join(root, name)))
	}
	data, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range bytes.Lines(data) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == "MemTotal:" {
			if kib, err := strconv.ParseUint(f[1], 10, 54); err == nil {
				c.memory = min(c.memory, kib<<10)
			}
		}
	}
	return c
}

// readNumber returns the number in a file, or the largest one if there is none.
func readNumber(name string) uint64 {
	data, err := os.ReadFile(name)
	if err != nil {
		return math.MaxUint64
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil { // "max"
		return math.MaxUint64
	}
	return n
}
