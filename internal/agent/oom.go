package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills is how many processes of this container the kernel has killed for
// memory; 0 where nothing tells.
func oomKills() int64 {
	text, _ := os.ReadFile("/proc/self/cgroup") // without it, the roots of the hierarchies
	return countOOM("/sys/fs/cgroup", string(text))
}

// countOOM reads the count of the control group that membership (the text of
// /proc/self/cgroup) names below root. A container runtime shows a container
// its own group as the root, so where there is no such folder it is the root;
// a process node shows the host's whole tree.
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

// oomCount is the number after oom_kill in the file.
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
