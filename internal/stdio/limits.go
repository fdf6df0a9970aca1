package stdio

import (
	"math"
	"strconv"
	"strings"
)

// Unlimited is the value of an unlimited limit in Limits. It fits into the integers of
// Kubernetes objects.
const Unlimited = math.MaxInt64

// limitNames maps the kernel's names of limits (proc(5)) to Slurm's.
var limitNames = map[string]string{
	"Max cpu time": "CPU", "Max file size": "FSIZE", "Max data size": "DATA", "Max stack size": "STACK",
	"Max core file size": "CORE",
	"Max resident set":   "RSS", "Max processes": "NPROC", "Max open files": "NOFILE", "Max locked memory": "MEMLOCK",
	"Max address space": "AS",
}

// Limits returns the soft resource limits of the process by Slurm's names, or an empty map
// if they are unknown. As the Go runtime raises the limit of open files, that one is the
// limit at the start of the process (OpenFiles).
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
