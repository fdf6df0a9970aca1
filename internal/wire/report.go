package wire

// Report kinds.
const (
	ReportEnded  = "ended"  // the batch script and all steps have ended
	ReportFailed = "failed" // the job could not be started; Message is the reason
	// The site's prolog or epilog failed on the agent's node, which need not be the
	// batch host; Message is the error.
	ReportProlog = "prolog"
	ReportEpilog = "epilog"
)

// Report is a report of the batch host's agent about its job.
type Report struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Kind    string `json:"kind"`
	// Status and Signal of the batch script, as Slurm's ExitCode pair.
	Status  int32 `json:"status"`
	Signal  int32 `json:"signal"`
	Derived int32 `json:"derived"` // highest exit code of the steps
	// DerivedSignal is the highest signal that ended a task with that code.
	DerivedSignal int32 `json:"derivedSignal,omitempty"`

	Message string `json:"message,omitempty"`
	Start   int64  `json:"start,omitempty"` // Unix nanoseconds
	End     int64  `json:"end,omitempty"`   // Unix nanoseconds
	// OutOfMemory means that the kernel killed a process of the job for memory.
	OutOfMemory bool `json:"outOfMemory,omitempty"`
	// Stopped means that the agent got SIGTERM, which a kubelet sends to a pod that is
	// deleted or evicted.
	Stopped bool `json:"stopped,omitempty"`
	// LostNode is the last node that was lost while a step ran there, and LostFor the
	// time from then to End. Empty: none.
	LostNode string `json:"lostNode,omitempty"`
	LostFor  int64  `json:"lostFor,omitempty"` // nanoseconds
	// Steps are records that no StepReport has contained.
	Steps []StepRecord `json:"steps,omitempty"`
}
