package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Promise is one thing that the cluster promises.
type Promise struct {
	Name  string
	check func(*History, func(format string, args ...any))
}

// Promises lists them all.
var Promises = []Promise{
	{"every accepted job is recorded", acceptedIsRecorded},
	{"a job has one final state", oneFinalState},
	{"a submission makes one job", oneJobPerSubmission},
	{"the final state is what happened", stateIsTrue},
	{"no task runs twice without a requeue", noTaskTwice},
	{"attempts do not overlap", attemptsApart},
	{"nothing runs after its end", nothingAfterTheEnd},
	{"dependencies hold", dependenciesHold},
	{"no job starts before its time", beginHolds},
	{"no held job starts", holdHolds},
	{"singletons run one at a time", singletonsApart},
	{"an array's throttle holds", throttleHolds},
	{"no CPU is shared", noCPUShared},
	{"no GPU is shared", noGPUShared},
	{"no node is overcommitted", noNodeOvercommitted},
	{"licenses suffice", licensesSuffice},
	{"time limits hold", limitsHold},
	{"ids are unique and increase", idsIncrease},
	{"nothing is stuck", nothingStuck},
	{"nothing is left behind", nothingLeft},
}

// Check returns the broken promises, sorted by promise.
func Check(h *History) []Violation {
	var out []Violation
	for _, p := range Promises {
		p.check(h, func(format string, args ...any) {
			out = append(out, Violation{p.Name, fmt.Sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return cmp.Compare(a.Promise, b.Promise) })
	return out
}
