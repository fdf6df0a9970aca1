package wire

// Kinds of Command.
const (
	CommandSignal    = "signal"    // send Signal to the job's processes
	CommandTerminate = "terminate" // terminate the job: SIGTERM, and SIGKILL after KillWait
	CommandLimit     = "limit"     // the job's time limit now ends at EndTime; that of Steps is Minutes
	CommandNotify    = "notify"    // write Text to the job's standard error
	// CommandComplete ends a job without a script, with Status as its exit code.
	CommandComplete = "complete"
	// CommandHungUp reports that Client, whose connection broke, will not reconnect.
	CommandHungUp = "hungup"
)

// Command is a command of the API role to the agent of the batch host.
type Command struct {
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Signal int32  `json:"signal,omitempty"`
	Batch  bool   `json:"batch,omitempty"` // the batch shell only
	Full   bool   `json:"full,omitempty"`  // batch shell and steps
	// Every sends SIGSTOP or SIGCONT to every process in the job's pods, including
	// those that left their session (scontrol suspend and resume).
	Every bool `json:"every,omitempty"`
	// Steps are the steps to which a signal is sent; empty: all.
	Steps []int32 `json:"steps,omitempty"`
	// End cancels the steps in place of sending the signal. By is the user who cancels
	// them.
	End bool   `json:"end,omitempty"`
	By  string `json:"by,omitempty"`
	// Status of a complete: the exit code.
	Status int32 `json:"status,omitempty"`
	// EndTime of a limit, in Unix seconds; 0: none. A limit with Steps has Minutes from
	// their start instead; -1: none. Text of a notify.
	EndTime int64  `json:"endTime,omitempty"`
	Minutes int32  `json:"minutes,omitempty"`
	Text    string `json:"text,omitempty"`
	// Client of a hungup, as in step.Open.
	Client string `json:"client,omitempty"`
	// Reason of a terminate, by the state of the job or step: "CANCELLED",
	// "TIMEOUT", "PREEMPTED", "REQUEUE", "NODE_FAIL".
	Reason string `json:"reason,omitempty"`
}
