package daemon

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/session"
)

// resources are the limits that can be set, by the names of limits.conf(5).
var resources = map[string]int{
	"nproc": unix.RLIMIT_NPROC, "nofile": unix.RLIMIT_NOFILE, "as": unix.RLIMIT_AS, "cpu": unix.RLIMIT_CPU,
	"core": unix.RLIMIT_CORE, "fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "stack": unix.RLIMIT_STACK,
	"data": unix.RLIMIT_DATA, "nice": unix.RLIMIT_NICE,
}

// limits reads SOFT or SOFT:HARD for each resource; a number in the unit of
// setrlimit(2), or unlimited.
func limits(in map[string]string) ([]session.Limit, error) {
	var out []session.Limit
	for name, text := range in {
		r, ok := resources[name]
		if !ok {
			return nil, fmt.Errorf("limits: %q is not a limit", name)
		}
		soft, hard, two := strings.Cut(text, ":")
		if !two {
			hard = soft
		}
		s, err := parseLimit(soft)
		if err != nil {
			return nil, fmt.Errorf("limits: %s: %w", name, err)
		}
		h, err := parseLimit(hard)
		if err != nil {
			return nil, fmt.Errorf("limits: %s: %w", name, err)
		}
		if s > h {
			return nil, fmt.Errorf("limits: %s: the soft limit %s is above the hard one %s", name, soft, hard)
		}
		out = append(out, session.Limit{Resource: r, Soft: s, Hard: h})
	}
	return out, nil
}

func parseLimit(s string) (uint64, error) {
	if s == "unlimited" {
		return math.MaxUint64, nil // RLIM_INFINITY
	}
	return strconv.ParseUint(s, 10, 64)
}
