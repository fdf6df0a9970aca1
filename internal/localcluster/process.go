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

// isExiting reports whether the process was killed, and the kernel has not freed all that it had.
func (p Process) isExiting() bool {
	f, err := statFields(p.PID)
	return err == nil && p.Alive() && f[0] == "Z"
}

// startTicks returns field 22 of /proc/PID/stat (proc(5)).
func startTicks(pid int) (uint64, error) {
	f, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// statFields returns the fields of /proc/PID/stat from the third one, the state.
func statFields(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The second field is the command's name in parentheses and may contain anything;
	// count from the last parenthesis.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: too few fields", pid)
	}
	return f, nil
}
