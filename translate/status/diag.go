package status

// Diag is the response to GET statistics: the statistics of the scheduler that sdiag
// shows. Times are Unix seconds, durations microseconds.
type Diag struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Time       int64  `json:"time"`
	Since      int64  `json:"since"` // when counting began: start, midnight UTC or a reset

	Answering int   `json:"answering"` // requests being served
	Unstored  int   `json:"unstored"`  // changes not yet in the accounting database
	Clock     int64 `json:"clock"`     // time to read the clock 1,000 times

	Submitted int64 `json:"submitted"`
	Started   int64 `json:"started"`
	Completed int64 `json:"completed"`
	Cancelled int64 `json:"cancelled"`
	Failed    int64 `json:"failed"`
	Pending   int64 `json:"pending"` // now
	Running   int64 `json:"running"`

	Plan PlanStats `json:"plan"`

	Types []RequestStats `json:"types"`
	Users []RequestStats `json:"users"`
}

// PlanStats are statistics of the planner's cycles, in which it considers every job.
type PlanStats struct {
	Cycles     int64 `json:"cycles"`
	Last       int64 `json:"last"`
	Max        int64 `json:"max"`
	Total      int64 `json:"total"`
	LastAt     int64 `json:"lastAt"` // Unix seconds
	Depth      int64 `json:"depth"`  // jobs considered in all cycles
	LastDepth  int64 `json:"lastDepth"`
	Queue      int64 `json:"queue"` // pending jobs in the last cycle
	QueueTotal int64 `json:"queueTotal"`
	// Backfilled are jobs that started while one of higher priority was pending,
	// since Since and since the start of the process.
	Backfilled     int64 `json:"backfilled"`
	BackfilledEver int64 `json:"backfilledEver"`
	Starts         int64 `json:"starts"`
	// Table is the number of jobs with a planned start in the last cycle.
	Table      int64 `json:"table"`
	TableTotal int64 `json:"tableTotal"`
}

// RequestStats are statistics of requests of one type or user.
type RequestStats struct {
	Name  string `json:"name"`
	ID    int64  `json:"id"` // of a user: the uid
	Count int64  `json:"count"`
	Total int64  `json:"total"`
}
