package stdio

import (
	"math"
	"strconv"
	"strings"
)

// Unlimited is how Limits writes a limit that is none; it fits into the
// integers of JSON objects in Kubernetes.
const Unlimited = math.MaxInt64

// limitNames are the kernel's names of limits (proc(5)) and Slurm's.
var limitNames = map[string]string{
	"Max cpu time": "CPU", "Max file size": "FSIZE", "Max data size": "DATA", "Max stack size": "STACK", "Max core file size": "CORE",
	"Max resident set": "RSS", "Max processes": "NPROC", "Max open files": "NOFILE", "Max locked memory": "MEMLOCK", "Max address space": "AS",
}

// Limits are the process's soft resource limits, by Slurm's names; empty where
// the kernel does not tell. The Go runtime raises the number of open files of
// this process, so that one is what it was before (OpenFiles).
func (p *Process) Limits() map[string]uint64 {
	text, err := p.ReadFile("/proc/self/limits")
	if err != nil {
		return nil
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		for kernel, name := range limitNames {
			rest, ok := strings.CutPrefix(line, kernel+" ")
			if !ok {
				continue
			}
			fields := strings.Fields(rest)
			if len(fields) == 0 {
				continue
			}
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				out[name] = uint64(n)
			} else if fields[0] == "unlimited" {
				out[name] = Unlimited
			}
		}
	}
	if out["NOFILE"] != 0 && p.OpenFiles != nil {
		if n, ok := p.OpenFiles(); ok {
			out["NOFILE"] = min(n, Unlimited)
		}
	}
	return out
}
