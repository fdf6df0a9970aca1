package daemon

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/session"
)

// groups returns how sessions are limited: by a cgroup for each user. If no cgroup can
// be created, it logs the reason and returns resource limits instead, unless the limits
// are required.
func (g *Cgroup) groups(warn func(string)) (*session.Cgroups, []session.Limit, error) {
	if g == nil {
		return nil, nil, nil
	}
	standIns, err := g.standIns()
	if err != nil {
		return nil, nil, err
	}
	groups := &session.Cgroups{Parent: g.Parent, CPU: g.CPUs, Memory: g.Memory, PIDs: g.PIDs}
	switch err := groups.Ready(); {
	case err == nil:
		return groups, nil, nil
	case g.Required, errors.Is(err, unix.EINVAL): // the kernel's error for invalid values
		return nil, nil, fmt.Errorf("cgroup: %w", err)
	default:
		warn(
			fmt.Sprintf(
				"no limits by cgroup: %v; resource limits stand in: pids for each user (nproc), memory for each process (data), no limit of CPUs",
				err,
			),
		)
		return nil, standIns, nil
	}
}

// standIns returns the resource limits that are closest to those of a cgroup: the
// kernel counts processes per user, and memory per process. Memory is the writable
// memory of a process, because programs reserve large amounts of address space that
// they never use.
func (g *Cgroup) standIns() ([]session.Limit, error) {
	var out []session.Limit
	for _, l := range []struct {
		name, text string
		resource   int
	}{{"memory", g.Memory, unix.RLIMIT_DATA}, {"pids", g.PIDs, unix.RLIMIT_NPROC}} {
		if l.text == "" || l.text == "max" {
			continue
		}
		n, err := amount(l.text)
		if err != nil {
			return nil, fmt.Errorf("cgroup: %s: %w", l.name, err)
		}
		out = append(out, session.Limit{Resource: l.resource, Soft: n, Hard: n})
	}
	return out, nil
}

// amount reads a number as the kernel reads memory.max: with K, M, G, T, P or E
// for powers of 1024.
func amount(s string) (uint64, error) {
	digits := strings.TrimRight(s, "kmgtpeKMGTPE")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(s) > len(digits)+1 {
		return 0, fmt.Errorf("%q is not an amount", s)
	}
	shift := 0
	if unit := s[len(digits):]; unit != "" {
		shift = 10 * (1 + strings.Index("kmgtpe", strings.ToLower(unit)))
	}
	if n<<shift>>shift != n {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return n << shift, nil
}
