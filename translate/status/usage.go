package status

// UsageQuery selects the usage from Start to End (Unix seconds).
type UsageQuery struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Jobs: separate entries, with the number of jobs, for each size of jobs.
	Jobs bool `json:"jobs,omitempty"`
	// Reservations: include the reservations of that time.
	Reservations bool `json:"reservations,omitempty"`
}

// Usage is the usage of one user in one account (and with one wckey) in TRES-seconds,
// for memory MiB-seconds. With UsageQuery.Jobs it is that of jobs of one size.
type Usage struct {
	Account string           `json:"account,omitempty"`
	User    string           `json:"user,omitempty"`
	WCKey   string           `json:"wckey,omitempty"`
	Jobs    int64            `json:"jobs,omitempty"`
	CPUs    int32            `json:"cpus,omitempty"` // of the job
	TRES    map[string]int64 `json:"tres"`
	// Waiting is the CPU-seconds for which eligible jobs were pending.
	Waiting int64 `json:"waiting,omitempty"`
}

// UsageList is the response to GET usage. Capacity is the current capacity of the
// cluster by TRES.
type UsageList struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Cluster    string           `json:"cluster"`
	Capacity   map[string]int64 `json:"capacity"`
	Items      []Usage          `json:"items"`
	// Reported is the capacity of the cluster's nodes in that time, in
	// TRES-seconds; Down is the part of it that was down or drained. nil: there
	// are no records of the nodes.
	Reported map[string]int64 `json:"reported,omitzero"`
	Down     map[string]int64 `json:"down,omitempty"`
	// Reservations includes deleted ones, with an entry for each period in which
	// one did not change. nil: there are no records of them, or the query did not
	// request them.
	Reservations []Reservation `json:"reservations,omitzero"`
}
