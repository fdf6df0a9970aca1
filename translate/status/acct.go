package status

// Record is the accounting record of one run of a job. A job that was requeued has a
// record for each run. Times are Unix seconds (0: not yet, or unknown), durations
// seconds, sizes MiB unless a name has another unit.
type Record struct {
	// UID identifies the job even if its id is reused; Restarts is the number of
	// the run from 0. Both together are the key of the record.
	UID      string `json:"uid"`
	Restarts int32  `json:"restarts,omitempty"`
	DBIndex  int64  `json:"dbIndex,omitempty"` // 0: not stored yet

	ID          int64  `json:"id"`
	ArrayJobID  int64  `json:"arrayJobID,omitempty"`
	ArrayTaskID string `json:"arrayTaskID,omitempty"` // "3", or "0-9%2" for tasks that are not split off
	HetJobID    int64  `json:"hetJobID,omitempty"`
	HetOffset   int32  `json:"hetOffset,omitempty"`

	Cluster   string `json:"cluster,omitempty"`
	Name      string `json:"name"`
	User      string `json:"user"`
	UserID    int64  `json:"userID"`
	Group     string `json:"group,omitempty"`
	GroupID   int64  `json:"groupID"`
	Account   string `json:"account,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Partition string `json:"partition,omitempty"`
	WCKey     string `json:"wckey,omitempty"`

	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	KilledBy string `json:"killedBy,omitempty"` // user who cancelled it
	// KilledByID is the uid of that user, or -1.
	KilledByID int64 `json:"killedByID,omitempty"`

	Submit    int64 `json:"submit"`
	Eligible  int64 `json:"eligible,omitempty"`
	Start     int64 `json:"start,omitempty"`
	End       int64 `json:"end,omitempty"`
	Suspended int64 `json:"suspended,omitempty"`
	TimeLimit int32 `json:"timeLimit,omitempty"` // minutes; -1: UNLIMITED
	Priority  int64 `json:"priority,omitempty"`

	Nodes        int32  `json:"nodes,omitempty"` // allocated
	ReqNodes     int32  `json:"reqNodes,omitempty"`
	NodeList     string `json:"nodeList,omitempty"`  // folded
	CPUs         int32  `json:"cpus,omitempty"`      // allocated
	BatchCPUs    int32  `json:"batchCPUs,omitempty"` // on the batch host
	ReqCPUs      int32  `json:"reqCPUs,omitempty"`
	ReqMem       int64  `json:"reqMem,omitempty"`
	ReqMemPerCPU bool   `json:"reqMemPerCPU,omitempty"`
	ReqTRES      string `json:"reqTRES,omitempty"`   // "billing=1,cpu=1,mem=100M,node=1"
	AllocTRES    string `json:"allocTRES,omitempty"` // the same form

	ExitCode int32 `json:"exitCode,omitempty"`
	Signal   int32 `json:"signal,omitempty"`
	Derived  int32 `json:"derived,omitempty"`
	// DerivedSignal is the signal of the derived exit code.
	DerivedSignal int32 `json:"derivedSignal,omitempty"`

	WorkDir       string `json:"workDir,omitempty"`
	SubmitLine    string `json:"submitLine,omitempty"`
	Comment       string `json:"comment,omitempty"`
	AdminComment  string `json:"adminComment,omitempty"`
	SystemComment string `json:"systemComment,omitempty"`
	Constraints   string `json:"constraints,omitempty"`
	Container     string `json:"container,omitempty"`
	Reservation   string `json:"reservation,omitempty"`
	Licenses      string `json:"licenses,omitempty"`
	Batch         bool   `json:"batch,omitempty"` // it ran a batch script

	History []StateChange `json:"history,omitempty"`
	Steps   []StepRecord  `json:"steps,omitempty"`
}

// StateChange is one change of a job's state; At is Unix microseconds.
type StateChange struct {
	State  string `json:"state"`
	At     int64  `json:"at"`
	Reason string `json:"reason,omitempty"`
}

// StepRecord is the accounting record of one step. Sizes are bytes, CPU times
// microseconds.
type StepRecord struct {
	Step      string `json:"step"` // "batch", "extern", "interactive", "0", "0+1"
	Name      string `json:"name,omitempty"`
	State     string `json:"state"`
	Start     int64  `json:"start,omitempty"`
	End       int64  `json:"end,omitempty"`
	Suspended int64  `json:"suspended,omitempty"`
	ExitCode  int32  `json:"exitCode,omitempty"`
	Signal    int32  `json:"signal,omitempty"`
	KilledBy  string `json:"killedBy,omitempty"`
	// KilledByID is the uid of the user who cancelled this step.
	KilledByID *int64 `json:"killedByID,omitempty"`

	Nodes     int32  `json:"nodes,omitempty"`
	NodeList  string `json:"nodeList,omitempty"`
	Tasks     int32  `json:"tasks,omitempty"`
	CPUs      int32  `json:"cpus,omitempty"`
	AllocTRES string `json:"allocTRES,omitempty"`
	Layout    string `json:"layout,omitempty"` // Block, Cyclic, ...

	UserCPU   int64 `json:"userCPU,omitempty"`
	SystemCPU int64 `json:"systemCPU,omitempty"`
	// Measured reports whether the fields below were measured.
	Measured bool `json:"measured,omitempty"`

	CPU       Measure `json:"cpu,omitzero"`
	RSS       Measure `json:"rss,omitzero"`
	VMSize    Measure `json:"vmSize,omitzero"`
	Pages     Measure `json:"pages,omitzero"` // major faults
	DiskRead  Measure `json:"diskRead,omitzero"`
	DiskWrite Measure `json:"diskWrite,omitzero"`

	SubmitLine  string `json:"submitLine,omitempty"`
	Container   string `json:"container,omitempty"`
	Constraints string `json:"constraints,omitempty"`
}

// Measure is the usage of one resource by the tasks of a step: the sum, and the tasks that
// used the most and the least.
type Measure struct {
	Total int64   `json:"total,omitempty"`
	Max   Extreme `json:"max,omitzero"`
	Min   Extreme `json:"min,omitzero"`
}

// Extreme is the usage of one task.
type Extreme struct {
	Amount int64  `json:"amount,omitempty"`
	Node   string `json:"node,omitempty"` // empty: the only node of the step
	Task   int32  `json:"task,omitempty"`
}

// Average returns the average usage of a task of the step.
func (p *StepRecord) Average(m *Measure) int64 { return m.Total / int64(max(1, p.Tasks)) }

// NodeOf returns the node of a task of the step.
func (p *StepRecord) NodeOf(e *Extreme) string {
	if e.Node == "" && p.Nodes == 1 {
		return p.NodeList
	}
	return e.Node
}

// RecordList is the response to GET records.
type RecordList struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Time       int64    `json:"time"` // the server's clock, Unix seconds
	Cluster    string   `json:"cluster"`
	Items      []Record `json:"items"`
	// Warning says that the list is incomplete: the database is unavailable, and
	// only jobs in the queue are listed.
	Warning string `json:"warning,omitempty"`
	// UnknownUsers and UnknownGroups are those in the query that do not exist.
	UnknownUsers  []string `json:"unknownUsers,omitempty"`
	UnknownGroups []string `json:"unknownGroups,omitempty"`
	// UnknownQOS is one in the query that does not exist; QOS then lists all.
	UnknownQOS string   `json:"unknownQOS,omitempty"`
	QOS        []string `json:"qos,omitempty"`
}

// RecordQuery selects records: each list that is not empty must contain the record's
// value. It is sent to the server as JSON.
type RecordQuery struct {
	Jobs       []string `json:"jobs,omitempty"` // "12", "12_3", "12_[1-3]", "12+1"; the caller selects steps
	Users      []string `json:"users,omitempty"`
	UserIDs    []int64  `json:"userIDs,omitempty"` // one of Users or UserIDs must match
	Me         bool     `json:"me,omitempty"`      // the caller's own
	Accounts   []string `json:"accounts,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	GroupIDs   []int64  `json:"groupIDs,omitempty"`
	Names      []string `json:"names,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	WCKeys     []string `json:"wckeys,omitempty"`
	Nodes      []string `json:"nodes,omitempty"` // expanded
	States     []string `json:"states,omitempty"`

	// Start and End are the time range in Unix seconds; 0: open.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`

	// Ranges [minimum, maximum]; maximum 0: exactly the minimum.
	NNodes, NCPUs, TimeLimit [2]int64 `json:",omitzero"`

	Constraints []string `json:"constraints,omitempty"`
	// Duplicates: every run of a job, not only the latest.
	Duplicates bool `json:"duplicates,omitempty"`
	NoSteps    bool `json:"noSteps,omitempty"`
	// Limit is the maximum number of records; 0: a million.
	Limit int `json:"limit,omitempty"`
}
