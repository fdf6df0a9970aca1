package status

// Operation verbs.
const (
	OpCancel  = "cancel"
	OpSignal  = "signal"
	OpRequeue = "requeue"
	OpHold    = "hold"
	OpRelease = "release"

	OpUHold = "uhold" // a hold that the job's user may release, whoever asks
	// OpComplete ends an allocation without a script; Status is its exit code.
	OpComplete = "complete"

	OpSuspend     = "suspend"
	OpResume      = "resume"
	OpRequeueHold = "requeuehold" // Set["State"] may be SPECIALEXIT
	OpTop         = "top"
	OpNotify      = "notify" // Message, to the job's standard error
	OpUpdate      = "update" // Entity, Targets (jobs: Jobs), Set
	OpCreate      = "create"
	OpDelete      = "delete"
)

// Entities of OpUpdate, OpCreate and OpDelete.
const (
	EntityJob         = "job"
	EntityStep        = "step"
	EntityNode        = "node"
	EntityPartition   = "partition"
	EntityReservation = "reservation"
)

// Operation is one request to change jobs (POST operations). A job is meant if
// it is named in Jobs (when given) and passes every filter that is given. The
// caller's own rights decide about each.
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
	// More filters: each that is given must hold.
	WCKeys       []string `json:"wckeys,omitempty"`
	Reservations []string `json:"reservations,omitempty"`
	Nodes        []string `json:"nodes,omitempty"` // expanded; a job passes that holds any of them

	// Entity and Targets say what OpUpdate, OpCreate and OpDelete act on:
	// expanded node names, partition or reservation names. Empty Entity: jobs.
	// OpCreate without Targets lets the server choose the name, which comes
	// back as OperationStatus.Job.
	Entity  string   `json:"entity,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Set holds what is to be changed: scontrol's keys as its manual page
	// writes them ("TimeLimit", "NumNodes", "State"), and the values as they
	// were typed; the server reads them, since "TimeLimit=+10" needs the job.
	// An addition "Nodes+=n1" is the key "Nodes+"; a removal "Nodes-".
	Set     map[string]string `json:"set,omitempty"`
	Message string            `json:"message,omitempty"` // of OpNotify
}

// OperationResult answers an Operation: one entry for each job that was meant,
// and one for each entry of Jobs that names no job.
type OperationResult struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Items      []OperationStatus `json:"items"`
}

// NotInTime as an OperationStatus.Error says that the request took too long
// before it came to this job: ask again for it.
const NotInTime = "not done in time; try again"

// OperationStatus is the outcome for one job. Error is a Slurm error text
// ("Invalid job id specified", "Access/permission denied", "Job/step already
// completing or completed"), empty for success.
type OperationStatus struct {
	Job   string `json:"job"` // or the Target
	Error string `json:"error,omitempty"`
	// NoStep: a step was named that its job, which runs, does not have.
	NoStep bool `json:"noStep,omitempty"`
}
