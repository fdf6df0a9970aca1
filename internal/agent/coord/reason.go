package coord

// EndReason is why a step is terminated.
type EndReason int

// The reasons, each with the text that follows the time in the notice in the step's output.
const (
	Cancelled   EndReason = iota // by a user, or with its job
	TimeLimit                    // DUE TO TIME LIMIT
	Preempted                    // DUE TO PREEMPTION
	Requeued                     // DUE TO JOB REQUEUE
	NodeFailure                  // DUE TO NODE FAILURE, ...
)

// Suffix returns the text that follows the time in the notice, beginning with a space. It is
// empty for Cancelled.
func (r EndReason) Suffix() string {
	switch r {
	case TimeLimit:
		return " DUE TO TIME LIMIT"
	case Preempted:
		return " DUE TO PREEMPTION"
	case Requeued:
		return " DUE TO JOB REQUEUE"
	case NodeFailure:
		return " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
	}
	return ""
}

// state returns the state of a step that was terminated for the reason.
func (r EndReason) state() string {
	if r == TimeLimit {
		return "TIMEOUT"
	}
	return "CANCELLED"
}

// ReasonOfState returns the reason to terminate the steps of a job that ends in
// the given state, or with REQUEUE.
func ReasonOfState(state string) EndReason {
	switch state {
	case "TIMEOUT":
		return TimeLimit
	case "PREEMPTED":
		return Preempted
	case "REQUEUE":
		return Requeued
	case "NODE_FAIL":
		return NodeFailure
	}
	return Cancelled
}
