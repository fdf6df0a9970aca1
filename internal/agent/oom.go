package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills returns how many processes of this container the kernel's OOM killer has killed,
// or 0 if that is unknown.
func oomKills() int64 {
	text, _ := os.ReadFile("/proc/self/cgroup") // on an error the roots of the hierarchies are used
	return countOOM("/sys/fs/cgroup", string(text))
}

// countOOM returns the count of the control group below root that membership, the
// contents of /proc/self/cgroup, names. Container runtimes show a container its own
// group as the root, so the root is used if there is no such directory. Process
// nodes show the host's whole tree.
func countOOM(root, membership string) int64 {
	for line := range strings.Lines(membership + "\n1:memory:/\n0::/\n") {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var file string
		switch {
		case fields[0] == "0" && fields[1] == "":
			file = filepath.Join(root, fields[2], "memory.events")
		case fields[1] == "memory":
			file = filepath.Join(root, "memory", fields[2], "memory.oom_control")
		default:
			continue
		}
		if n, ok := oomCount(file); ok {
			return n
		}
	}
	return 0
}

// oomCount returns the number after oom_kill in the file.
func oomCount(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}
