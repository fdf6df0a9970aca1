package keeper

import (
	"slices"
	"testing"
	"time"
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

func TestThrottledJobKeepsItsNodes(t *testing.T) {
	late := t0.Add(10 * rules.StartTimeout)
	f := Facts{Job: aJob("CONFIGURING"), Now: t0, Rules: rules, StartThrottled: true, Lost: func(string) bool { return false }}
	if a := Decide(f); a.Kind != WaitStart || !a.Wake.Equal(t0.Add(throttlePause)) {
		t.Errorf("a throttled job does not wait for its turn: %+v", a)
	}
	f.Now, f.Progress = late, Progress{Attempt: 2, Queued: true}
	if a := Decide(f); a.Kind != WaitStart {
		t.Errorf("a throttled job does not wait any longer: %+v", a)
	}
	if f.StartThrottled = false; Decide(f).Kind != Create {
		t.Errorf("a job whose turn it is does not start: %+v", Decide(f))
	}
	f.Progress.Created, f.Progress.CreatedAt = true, late
	if a := Decide(f); a.Kind != Wait || !a.Wake.Equal(late.Add(rules.StartTimeout)) {
		t.Errorf("the agents of a job that was throttled have less time: %+v", a)
	}
	f.Now = late.Add(rules.StartTimeout + time.Second)
	if a := Decide(f); a.Kind != End || a.Outcome.Final != "PENDING" {
		t.Errorf("%+v", a)
	}
}
