package status

import "strings"

// JobState is the state of a job by Slurm's name (squeue(1), JOB STATE CODES).
// Rows and objects hold it as a string; convert to use the predicates.
type JobState string

// The states that jobs of Berth have. Their values are part of the API.
const (
	StatePending     = "PENDING"
	StateConfiguring = "CONFIGURING" // has its nodes; not every agent has reported yet
	StateRunning     = "RUNNING"
	StateSuspended   = "SUSPENDED"
	StateCompleting  = "COMPLETING" // its outcome is decided; pods are still terminating
	StateCompleted   = "COMPLETED"
	StateFailed      = "FAILED"
	StateTimeout     = "TIMEOUT"
	StateCancelled   = "CANCELLED"
	StateNodeFail    = "NODE_FAIL"
	StatePreempted   = "PREEMPTED"
	StateBootFail    = "BOOT_FAIL"
	StateDeadline    = "DEADLINE"
	StateOutOfMemory = "OUT_OF_MEMORY"
	// StateRequeued is the state of a run, in the job's past, after which the job
	// went back to the queue by request.
	StateRequeued = "REQUEUED"
	// StateSpecialExit and StateReservationDeleted are how two kinds of held jobs
	// are shown: requeued with scontrol requeuehold State=SpecialExit, and left
	// behind by a deleted reservation.
	StateSpecialExit        = "SPECIAL_EXIT"
	StateReservationDeleted = "RESV_DEL_HOLD"
)

// JobStates lists every state of Slurm, those included that jobs of Berth never
// have, in the order in which squeue's error message names them.
var JobStates = []string{
	StatePending, StateRunning, StateSuspended, StateCompleted, StateCancelled, StateFailed, StateTimeout,
	StateNodeFail, StatePreempted, StateBootFail, StateDeadline, StateOutOfMemory, StateCompleting,
	StateConfiguring, "RESIZING", StateReservationDeleted, StateRequeued, "REQUEUE_FED", "REQUEUE_HOLD", "REVOKED",
	"SIGNALING", StateSpecialExit, "STAGE_OUT", "STOPPED",
}

var jobStateCodes = map[JobState]string{
	StatePending: "PD", StateRunning: "R", StateSuspended: "S", StateCompleted: "CD", StateCancelled: "CA",
	StateFailed: "F", StateTimeout: "TO", StateNodeFail: "NF", StatePreempted: "PR", StateBootFail: "BF",
	StateDeadline: "DL", StateOutOfMemory: "OOM", StateCompleting: "CG", StateConfiguring: "CF",
	"RESIZING": "RS", StateReservationDeleted: "RD", StateRequeued: "RQ", "REQUEUE_FED": "RF",
	"REQUEUE_HOLD": "RH", "REVOKED": "RV", "SIGNALING": "SI", StateSpecialExit: "SE",
	"STAGE_OUT": "SO", "STOPPED": "ST",
}

// ParseJobState returns the state with the given name or code, in either case.
func ParseJobState(text string) (state string, ok bool) {
	for _, s := range JobStates {
		if strings.EqualFold(text, s) || strings.EqualFold(text, JobState(s).Code()) {
			return s, true
		}
	}
	return "", false
}

// Code returns the state's short name, such as "PD". An unknown state is its
// own code.
func (s JobState) Code() string {
	if code, ok := jobStateCodes[s]; ok {
		return code
	}
	return string(s)
}

// IsFinal reports whether a job in this state has ended and never runs again,
// unless it is requeued. COMPLETING is not final, nor is an empty state.
func (s JobState) IsFinal() bool {
	switch s {
	case StateCompleted, StateFailed, StateTimeout, StateCancelled, StateNodeFail, StatePreempted,
		StateBootFail, StateDeadline, StateOutOfMemory:
		return true
	}
	return false
}

// IsPending reports whether a job in this state waits for its start. An empty
// state, that of an object without a status, is pending; so are SPECIAL_EXIT
// and RESV_DEL_HOLD, which are held.
func (s JobState) IsPending() bool {
	switch s {
	case "", StatePending, StateSpecialExit, StateReservationDeleted:
		return true
	}
	return false
}
