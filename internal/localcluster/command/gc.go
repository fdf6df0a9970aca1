package command

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// The collector lets garbage grow to garbageTarget, because most garbage of a cluster is
// created and dropped within milliseconds, but by no more than gcPercentMost of the live
// heap while that is small, and by no less than gcPercentLeast where it is large. A
// larger target makes the process larger without making it faster: beyond the
// processor's caches, fresh memory costs as much as the collector saves.
//
// A cluster that has allocated little for idleAfter gives its garbage back to the system and
// keeps less of it, gcPercentIdle: then a collection is needed about once a minute, and the
// machine's owner may have better use for the memory.
const (
	garbageTarget  = 128 << 20 // bytes
	gcPercentLeast = 100
	gcPercentMost  = 400
	gcPercentIdle  = 40
	gcPercentStep  = 20 // each change stops the world for a moment
	heapPause      = time.Second
	idleAfter      = 30 * time.Second
	idleRate       = 4 << 20 // bytes per second; leases and watches of an idle cluster make 1 MB
)

// tuneGC adapts the collector to the size of the heap until ctx ends.
func tuneGC(ctx context.Context) {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	tick := time.NewTicker(heapPause)
	defer tick.Stop()
	var load heapLoad
	for was := 0; ; {
		metrics.Read(heap)
		idle, began := load.observe(heap[1].Value.Uint64(), heapPause)
		if percent := gcPercent(heap[0].Value.Uint64(), idle); percent != was {
			debug.SetGCPercent(percent)
			was = percent
		}
		if began {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// heapLoad tells an idle cluster from a busy one. The zero value is busy.
type heapLoad struct {
	allocated uint64 // bytes, since the process began
	quiet     time.Duration
}

// observe takes the bytes that have been allocated since the process began, pause after the
// previous call. began: the cluster has just become idle.
func (h *heapLoad) observe(allocated uint64, pause time.Duration) (idle, began bool) {
	rate := float64(allocated-h.allocated) / pause.Seconds()
	h.allocated = allocated
	if rate > idleRate {
		h.quiet = 0
		return false, false
	}
	before := h.quiet
	h.quiet += pause
	return h.quiet >= idleAfter, h.quiet >= idleAfter && before < idleAfter
}

// gcPercent returns the value of GOGC for a live heap of that many bytes.
func gcPercent(live uint64, idle bool) int {
	if idle {
		return gcPercentIdle
	}
	percent := garbageTarget * 100 / max(live, 1) / gcPercentStep * gcPercentStep
	return int(min(max(percent, gcPercentLeast), gcPercentMost)) //nolint:gosec // between constants
}

// memoryPart is the inverse of the share of the machine's memory above which the collector
// works more often, and leastMemory the amount below which it never does.
const (
	memoryPart  = 4
	leastMemory = 1 << 30
)

// limitMemory makes the collector work more often when a large cluster would use more
// than its share of the machine.
func limitMemory() {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err == nil {
		debug.SetMemoryLimit(max(leastMemory, int64(s.Totalram)*int64(s.Unit)/memoryPart))
	}
}
