package localcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadProcess returns the process that runs the cluster of a state directory.
func ReadProcess(dir string) (Process, error) {
	var p Process
	data, err := os.ReadFile(filepath.Join(dir, fileProcess))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(data, &p)
}

// Alive reports whether the process still runs. A later process with the same id does
// not count.
func (p Process) Alive() bool {
	started, err := startTicks(p.PID)
	return err == nil && started == p.Started
}

// startTicks returns field 22 of /proc/PID/stat (proc(5)).
func startTicks(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the command's name in parentheses and may contain anything;
	// count from the last parenthesis.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: too few fields", pid)
	}
	return strconv.ParseUint(f[19], 10, 64)
}
