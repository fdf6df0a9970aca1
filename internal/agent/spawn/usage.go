package spawn

import (
	"syscall"

	"github.com/berth-hpc/berth/internal/step"
)

// blockSize is the unit of a Rusage's block counts (getrusage(2)).
const blockSize = 512

// Usage converts the result of getrusage(2).
func Usage(r *syscall.Rusage) step.TaskUsage {
	micros := func(t syscall.Timeval) int64 { return int64(t.Sec)*1e6 + int64(t.Usec) }
	return step.TaskUsage{
		User: micros(r.Utime), System: micros(r.Stime), RSS: int64(r.Maxrss) << 10, Pages: int64(r.Majflt),
		Read: int64(r.Inblock) * blockSize, Write: int64(r.Oublock) * blockSize,
	}
}
