package status

// Operation verbs.
const (
	OpCancel  = "cancel"
	OpSignal  = "signal"
	OpRequeue = "requeue"
	OpHold    = "hold"
	OpRelease = "release"

	OpUHold = "uhold" // a hold that the job's user may release, even one by an operator
	// OpComplete ends an allocation without a script; Status is its exit code.
	OpComplete = "complete"

	OpSuspend     = "suspend"
	OpResume      = "resume"
	OpRequeueHold = "requeuehold" // Set["State"] may be SPECIALEXIT
	OpTop         = "top"
	OpNotify      = "notify" // writes Message to the job's standard error
	OpUpdate      = "update" // Entity, Targets (jobs: Jobs), Set
	OpCreate      = "create"
	OpDelete      = "delete"
	OpReboot      = "reboot" // of nodes: Targets; Set has NextState, Reason, and ASAP if it is given
)

// Entities of OpUpdate, OpCreate and OpDelete.
const (
	EntityJob         = "job"
	EntityStep        = "step"
	EntityNode        = "node"
	EntityPartition   = "partition"
	EntityReservation = "reservation"
)

// Operation is a request to change jobs (POST operations). It applies to the jobs
// that are in Jobs, if it is given, and match every given filter. The caller needs
// the right to change each of them.
type Operation struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Verb       string   `json:"verb"`
	Jobs       []string `json:"jobs,omitempty"` // "12", "12_3", "12_[1-3]", "12+1"
	Users      []string `json:"users,omitempty"`
	Names      []string `json:"names,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	States     []string `json:"states,omitempty"`
	Accounts   []string `json:"accounts,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	Signal     int32    `json:"signal,omitempty"`
	Batch      bool     `json:"batch,omitempty"`
	Full       bool     `json:"full,omitempty"`
	Status     int32    `json:"status,omitempty"` // of OpComplete, 0 to 255
	// More filters.
	WCKeys       []string `json:"wckeys,omitempty"`
	Reservations []string `json:"reservations,omitempty"`
	Nodes        []string `json:"nodes,omitempty"` // expanded; matches jobs on any of them

	// Entity and Targets are the objects of OpUpdate, OpCreate and OpDelete:
	// expanded node names, partition or reservation names. Empty Entity: jobs.
	// For OpCreate without Targets the server chooses the name and returns it as
	// OperationStatus.Job.
	Entity  string   `json:"entity,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Set has the changes: scontrol's keys as its manual page spells them
	// ("TimeLimit", "NumNodes", "State"), and the values as they were typed. The
	// server parses them, as "TimeLimit=+10" depends on the job. The key of
	// "Nodes+=n1" is "Nodes+", that of "Nodes-=n1" "Nodes-".
	Set map[string]string `json:"set,omitempty"`
	// Keys are the keys of Set in the order in which they were given: the first of several
	// wrong values is refused. Keys of Set that are missing here come last.
	Keys    []string `json:"keys,omitempty"`
	Message string   `json:"message,omitempty"` // of OpNotify
}

// OperationResult is the response to an Operation: one entry for each job to which it
// applies, and one for each entry of Jobs that does not exist.
type OperationResult struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Items      []OperationStatus `json:"items"`
}

// NotInTime is the OperationStatus.Error with CodeNotInTime.
const NotInTime = "not done in time; try again"

// OperationStatus is the outcome for one job. Error is a Slurm error text
// ("Invalid job id specified", "Access/permission denied", "Job/step already
// completing or completed"), empty for success.
type OperationStatus struct {
	Job   string `json:"job"` // or the Target
	Error string `json:"error,omitempty"`
	// Code is for programs, which must not depend on the text of Error.
	Code ErrorCode `json:"code,omitempty"`
	// Parameter and Value are the setting that the error is about, if it is about one.
	// If the message contains the setting, it is in the same form: Parameter=Value.
	Parameter string `json:"parameter,omitempty"`
	Value     string `json:"value,omitempty"`
	// NoStep: the job is running but does not have the named step.
	NoStep bool `json:"noStep,omitempty"`
}

// Ended reports whether the operation failed only because the job has ended, or is not
// known any more.
func (s OperationStatus) Ended() bool {
	return s.Code == CodeAlreadyCompleting || s.Code == CodeInvalidJobID
}
