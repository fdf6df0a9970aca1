package keeper

import (
	"slices"
	"testing"
)

// At most maxStarting jobs have their objects created at a time. The others follow in
// the order in which they came, one for each that is done.
func TestStartThrottleKeepsTheOrder(t *testing.T) {
	var s startThrottle
	for id := int64(1); id <= maxStarting; id++ {
		if s.full(id) {
			t.Fatalf("no room for job %d", id)
		}
		s.begin(id)
	}
	if !s.full(1000) || s.full(1) {
		t.Error("there is room for one more, or none for a job that has started")
	}
	for _, id := range []int64{1000, 1001, 1000, 1002} {
		s.enter(id)
	}
	if next := s.end(5000); next != nil {
		t.Errorf("a job that had not started ended: %v", next)
	}
	if next := s.end(7); !slices.Equal(next, []int64{1000}) {
		t.Errorf("%v", next)
	}
	s.end(8)
	s.end(9)
	if next := s.end(10); len(next) != 0 || s.full(2000) {
		t.Errorf("%v", next)
	}
}
