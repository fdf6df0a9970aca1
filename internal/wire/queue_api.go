package wire

// QueueGroup is the aggregated API (queue.berth.hpc/v1alpha1), cluster-scoped:
// GET jobs, nodes, partitions, clusterinfo; POST operations.
const (
	QueueGroup   = "queue.berth.hpc"
	QueueVersion = "v1alpha1"
	QueueRoot    = "/apis/queue.berth.hpc/v1alpha1"
)

// AttachProtocol is the protocol to which connections to jobs/ID/attach of the queue API
// are upgraded: the frames of internal/step, with the agent of the job's first node.
const AttachProtocol = "berth-step"

// AttachClient is the parameter of such a request with the client's name (step.Open's
// Client). The agent is notified with this name when the client has hung up.
const AttachClient = "client"

// ReasonJobDone is the reason of the Status that refuses to attach to a job that
// has ended.
const ReasonJobDone = "JobDone"

// JobEvent is a line of the answer of jobs/ID/attach without an upgrade: a change of the
// job. Empty lines keep the connection alive.
type JobEvent struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is pending, or ended
	// Welcome describes a running job, without keys, script and environment.
	Welcome *Welcome `json:"welcome,omitempty"`
	// Notice is a message of scontrol notify; the event is about nothing else.
	Notice string `json:"notice,omitempty"`
	// Final marks the last event, after the end of the job. Status and Signal are its
	// exit code.
	Final  bool  `json:"final,omitempty"`
	Status int32 `json:"status,omitempty"`
	Signal int32 `json:"signal,omitempty"`
}
