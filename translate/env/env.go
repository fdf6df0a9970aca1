// Package env makes the environment of a job's processes: the SLURM_*
// variables of the batch script and of the tasks of a step, with the names and
// values that Slurm 22.05 gives them for the same shape, and the file names
// that output patterns stand for. It is pure: everything it says comes from
// its arguments.
package env

import (
	"slices"
	"strconv"
	"strings"
)

// Merge lays over on top of base; both are NAME=value entries. Where a name
// occurs twice the last one counts. The order is base's, then over's.
func Merge(base []string, over ...string) []string {
	out := make([]string, 0, len(base)+len(over))
	at := make(map[string]int, len(base)+len(over))
	for _, list := range [2][]string{base, over} {
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

// Without drops the entries whose name drop says yes to.
func Without(list []string, drop func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return drop(name)
	})
}

// Get finds the value of name, the last one.
func Get(list []string, name string) (string, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if n, v, _ := strings.Cut(list[i], "="); n == name {
			return v, true
		}
	}
	return "", false
}

// Umask is what SLURM_UMASK says in octal, which goes before a process's own;
// own where it says nothing.
func Umask(environ []string, own int) int {
	text, _ := Get(environ, "SLURM_UMASK")
	if n, err := strconv.ParseUint(text, 8, 9); err == nil {
		return int(n)
	}
	return own
}

// Join writes entries as a BatchJob keeps them: each ended by a NUL byte.
func Join(list []string) []byte {
	var b []byte
	for _, entry := range list {
		b = append(append(b, entry...), 0)
	}
	return b
}

// Split reads what Join wrote.
func Split(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
