package keeper

import (
	"slices"
	"testing"
	"time"
)

// So many jobs have their objects made at a time; the others follow in the order
// in which they came, one for each that is done.
func TestJobsStartInLine(t *testing.T) {
	var s starting
	for id := int64(1); id <= mostStarting; id++ {
		if s.full(id) {
			t.Fatalf("no room for job %d", id)
		}
		s.begin(id)
	}
	if !s.full(1000) || s.full(1) {
		t.Error("there is room for one more, or none for one that has begun")
	}
	for _, id := range []int64{1000, 1001, 1000, 1002} {
		s.enter(id)
	}
	if next := s.end(5000); next != nil {
		t.Errorf("a job that had not begun ended: %v", next)
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

func TestAJobInLineKeepsItsPlaces(t *testing.T) {
	late := t0.Add(10 * rules.StartTimeout)
	f := Facts{Job: aJob("CONFIGURING"), Now: t0, Rules: rules, Crowded: true, Lost: func(string) bool { return false }}
	if a := Decide(f); a.Kind != Line || !a.Wake.Equal(t0.Add(linePause)) {
		t.Errorf("it does not wait for its turn: %+v", a)
	}
	f.Now, f.Memory = late, Memory{Attempt: 2, InLine: true}
	if a := Decide(f); a.Kind != Line {
		t.Errorf("it waits no more: %+v", a)
	}
	if f.Crowded = false; Decide(f).Kind != Create {
		t.Errorf("it is not its turn: %+v", Decide(f))
	}
	f.Memory.Created, f.Memory.CreatedAt = true, late
	if a := Decide(f); a.Kind != Wait || !a.Wake.Equal(late.Add(rules.StartTimeout)) {
		t.Errorf("its agents have less time than others': %+v", a)
	}
	f.Now = late.Add(rules.StartTimeout + time.Second)
	if a := Decide(f); a.Kind != End || a.Outcome.Final != "PENDING" {
		t.Errorf("%+v", a)
	}
}
