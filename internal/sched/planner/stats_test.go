package planner

import (
	"sync/atomic"
	"testing"
	"time"
)

// The planner reads no clock but the injected one: here a second passes at each reading.
func TestDurationsAreMeasuredByTheInjectedClock(t *testing.T) {
	b := newBench(t)
	var readings atomic.Int64
	b.now = func() time.Time { return time.Unix(1_800_000_000+readings.Add(1), 0) }
	b.submit(1, 1)
	b.cycle(t.Context())
	s := b.Stats()
	if s.Cycles != 1 || s.LastAt <= 1_800_000_000 || s.LastAt > 1_800_000_000+readings.Load() {
		t.Errorf("%+v: the cycle was begun at another time", s)
	}
	if took := time.Duration(s.Last) * time.Microsecond; took < 2*time.Second || took%time.Second != 0 {
		t.Errorf("the cycle took %v, want whole seconds", took)
	}
	if took := b.PlanDuration(); took != time.Second {
		t.Errorf("the plan took %v, want one second", took)
	}
}
