package status

// UsageQuery asks for what was used from Start to End (Unix seconds).
type UsageQuery struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Jobs: an entry for each size of jobs, too, with their number.
	Jobs bool `json:"jobs,omitempty"`
	// Reservations: those of that time, too.
	Reservations bool `json:"reservations,omitempty"`
}

// Usage is what one user used in one account (and with one wckey): TRES times
// seconds, memory in MiB-seconds. With UsageQuery.Jobs it is by jobs of one size.
type Usage struct {
	Account string           `json:"account,omitempty"`
	User    string           `json:"user,omitempty"`
	WCKey   string           `json:"wckey,omitempty"`
	Jobs    int64            `json:"jobs,omitempty"`
	CPUs    int32            `json:"cpus,omitempty"` // of the job
	TRES    map[string]int64 `json:"tres"`
	// Waiting is the CPU-seconds that eligible jobs waited with.
	Waiting int64 `json:"waiting,omitempty"`
}

// UsageList answers GET usage. Capacity is what the cluster has now, by TRES.
type UsageList struct {
	Kind       string           `json:"kind"`
	APIVersion string           `json:"apiVersion"`
	Cluster    string           `json:"cluster"`
	Capacity   map[string]int64 `json:"capacity"`
	Items      []Usage          `json:"items"`
	// Reported is what the cluster's nodes could have given in that time, in
	// TRES-seconds, as far as they were there; Down what of it they could not,
	// being down or drained. nil: nobody kept account of the nodes.
	Reported map[string]int64 `json:"reported,omitzero"`
	Down     map[string]int64 `json:"down,omitempty"`
	// Reservations, also those that are gone; an entry for each time that one was
	// of the same terms. nil: nobody kept account of them, or was asked.
	Reservations []Reservation `json:"reservations,omitzero"`
}
