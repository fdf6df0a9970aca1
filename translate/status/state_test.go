package status

import "testing"

func TestEveryJobStateHasACode(t *testing.T) {
	seen := map[string]string{}
	for _, s := range JobStates {
		code := JobState(s).Code()
		if code == s {
			t.Errorf("%s has no code", s)
		}
		if other, ok := seen[code]; ok {
			t.Errorf("%s and %s have the same code %s", s, other, code)
		}
		seen[code] = s
		for _, text := range []string{s, code} {
			if parsed, ok := ParseJobState(text); !ok || parsed != s {
				t.Errorf("ParseJobState(%q) = %q, %v; want %q", text, parsed, ok, s)
			}
		}
	}
	if len(jobStateCodes) != len(JobStates) {
		t.Errorf("%d codes for %d states", len(jobStateCodes), len(JobStates))
	}
	if _, ok := ParseJobState("nonsense"); ok {
		t.Error("ParseJobState accepts an unknown state")
	}
}

func TestFinalAndPendingStates(t *testing.T) {
	final := map[JobState]bool{
		StateCompleted: true, StateFailed: true, StateTimeout: true, StateCancelled: true, StateNodeFail: true,
		StatePreempted: true, StateBootFail: true, StateDeadline: true, StateOutOfMemory: true,
	}
	pending := map[JobState]bool{"": true, StatePending: true, StateSpecialExit: true, StateReservationDeleted: true}
	for _, name := range append([]string{""}, JobStates...) {
		s := JobState(name)
		if s.IsFinal() != final[s] || s.IsPending() != pending[s] {
			t.Errorf("%q: final %v, pending %v", s, s.IsFinal(), s.IsPending())
		}
	}
}

func TestReasonPredicates(t *testing.T) {
	for _, test := range []struct {
		reason                                 Reason
		dependency, never, held, node, qos, as bool
	}{
		{reason: ""},
		{reason: ReasonPriority},
		{reason: ReasonDependency, dependency: true},
		{reason: ReasonDependencyNeverSatisfied, dependency: true, never: true},
		{reason: ReasonHeldUser, held: true},
		{reason: ReasonHeldAdmin, held: true},
		{reason: "ReqNodeNotAvail, UnavailableNodes:n1", node: true},
		{reason: "QOSMaxJobsPerUserLimit", qos: true},
		{reason: "AssocGrpCpuLimit", as: true},
	} {
		r := test.reason
		if r.IsDependency() != test.dependency || r.IsNeverSatisfied() != test.never || r.IsHeld() != test.held ||
			r.IsNodeNotAvailable() != test.node || r.IsQOSLimit() != test.qos || r.IsAssociationLimit() != test.as {
			t.Errorf("%q: a predicate is wrong", r)
		}
	}
}
