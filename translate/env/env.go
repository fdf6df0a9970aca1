// Package env computes the environment of a job's processes: the SLURM_* variables
// of the batch script and of the tasks of a step, with the names and values of Slurm
// 22.05, and the file names for patterns of output files. It is pure: results depend
// only on the arguments.
package env

import (
	"slices"
	"strconv"
	"strings"
)

// Merge returns base with the entries of overrides added; both are NAME=value
// entries. The last entry with a name wins. The order is that of base, then of
// overrides.
func Merge(base []string, overrides ...string) []string {
	out := make([]string, 0, len(base)+len(overrides))
	at := make(map[string]int, len(base)+len(overrides))
	for _, list := range [2][]string{base, overrides} {
		for _, entry := range list {
			name, _, ok := strings.Cut(entry, "=")
			if !ok || name == "" {
				continue
			}
			if i, seen := at[name]; seen {
				out[i] = entry
				continue
			}
			at[name] = len(out)
			out = append(out, entry)
		}
	}
	return out
}

// SlurmConf is the value of SLURM_CONF if the user has not set it: Slurm's usual file. Berth
// does not read the file; programs use the variable to detect Slurm.
const SlurmConf = "/etc/slurm/slurm.conf"

// WithSlurmConf returns base with SLURM_CONF, if it has none.
func WithSlurmConf(base []string) []string {
	if _, set := Get(base, "SLURM_CONF"); set {
		return base
	}
	return append(base, "SLURM_CONF="+SlurmConf)
}

// Without returns the entries except those for whose names drop returns true.
func Without(list []string, drop func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return drop(name)
	})
}

// Get returns the last value of name.
func Get(list []string, name string) (string, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if n, v, _ := strings.Cut(list[i], "="); n == name {
			return v, true
		}
	}
	return "", false
}

// Umask returns the octal value of SLURM_UMASK, or own, the umask of the process, if
// it is not set.
func Umask(environ []string, own int) int {
	text, _ := Get(environ, "SLURM_UMASK")
	if n, err := strconv.ParseUint(text, 8, 9); err == nil {
		return int(n)
	}
	return own
}

// Join returns entries in the form of a BatchJob: NUL-terminated.
func Join(list []string) []byte {
	var b []byte
	for _, entry := range list {
		b = append(append(b, entry...), 0)
	}
	return b
}

// Split returns the entries that Join joined.
func Split(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
