package command

import (
	"testing"
	"time"
)

// The amount of garbage is near the target for a heap of any size, within the bounds.
func TestGCPercent(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{0, gcPercentMost},
		{16 << 20, gcPercentMost},
		{40 << 20, 320},
		{100 << 20, 120},
		{130 << 20, gcPercentLeast},
		{4 << 30, gcPercentLeast},
	} {
		if got := gcPercent(tt.live, false); got != tt.want {
			t.Errorf("gcPercent(%d MB) = %d, want %d", tt.live>>20, got, tt.want)
		}
	}
}

// A cluster is idle when it has allocated little for a while, and busy as soon as it allocates.
func TestIdleHeap(t *testing.T) {
	var h heapLoad
	var allocated uint64
	after := func(bytes uint64) (idle, began bool) {
		allocated += bytes
		return h.observe(allocated, time.Second)
	}
	after(1 << 30) // the start
	seconds := int(idleAfter / time.Second)
	for range 2 {
		for i := range 2 * seconds {
			idle, began := after(idleRate / 2)
			if idle != (i+1 >= seconds) || began != (i+1 == seconds) {
				t.Fatalf("after %d quiet seconds: idle %t, began %t", i+1, idle, began)
			}
		}
		if idle, _ := after(2 * idleRate); idle {
			t.Fatal("idle while it allocates")
		}
	}
	if got := gcPercent(100<<20, true); got != gcPercentIdle {
		t.Errorf("gcPercent of an idle cluster: %d", got)
	}
}
