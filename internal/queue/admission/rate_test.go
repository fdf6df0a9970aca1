package admission

import (
	"strconv"
	"testing"
	"time"
)

// TestIdleCallersAreDropped: a limiter is kept only until its caller may send a whole burst
// again, so that memory does not grow with the number of callers ever seen.
func TestIdleCallersAreDropped(t *testing.T) {
	var x rates
	now := time.Unix(1_700_000_000, 0)
	const burst = 300
	reserve := func(name string) time.Duration { return x.reserve(name, 1, burst, now).DelayFrom(now) }
	for i := range 1000 {
		reserve("user" + strconv.Itoa(i))
	}
	for range burst {
		reserve("busy")
	}
	now = now.Add(sweepInterval)
	reserve("new")
	if _, ok := x.limits["busy"]; !ok || len(x.limits) != 2 {
		t.Errorf("%d limiters are kept, want those of busy and new", len(x.limits))
	}
	for range int(sweepInterval.Seconds()) {
		if delay := reserve("busy"); delay != 0 {
			t.Fatalf("a busy caller waits %v for what it may send", delay)
		}
	}
	if reserve("busy") == 0 {
		t.Error("a busy caller has a new burst after a sweep")
	}
}
