package status

// AcctEvent is a period in which a node was unavailable or, without a node, in which
// the resources of the cluster did not change.
type AcctEvent struct {
	Node   string `json:"node,omitempty"`
	Nodes  string `json:"nodes,omitempty"` // of the whole cluster, folded
	Start  int64  `json:"start"`           // Unix seconds
	End    int64  `json:"end,omitempty"`   // 0: not over
	State  string `json:"state,omitempty"` // "DOWN", "DOWN*", "DRAIN"
	Reason string `json:"reason,omitempty"`
	User   string `json:"user,omitempty"` // who changed the node's state
	UserID int64  `json:"uid,omitempty"`
	TRES   string `json:"tres,omitempty"`
}

// EventQuery selects events by period, in Unix seconds; 0: open. Open: only events
// that are not over.
type EventQuery struct {
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	Open  bool  `json:"open,omitempty"`
}

// EventList is the response to GET events, ordered by node and start.
type EventList struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Time       int64       `json:"time"` // the server's clock, Unix seconds
	Cluster    string      `json:"cluster"`
	Items      []AcctEvent `json:"items"`
}

// Transaction is a change that was made with sacctmgr.
type Transaction struct {
	At     int64  `json:"at"` // Unix seconds
	Action string `json:"action"`
	Actor  string `json:"actor"`
	Where  string `json:"where"`
	Info   string `json:"info"`
	// User and Account are the affected ones, if any.
	User    string `json:"user,omitempty"`
	Account string `json:"account,omitempty"`
}

// TransactionQuery selects transactions by period, like EventQuery.
type TransactionQuery struct {
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
}

// TransactionList is the response to GET transactions, oldest first.
type TransactionList struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Cluster    string        `json:"cluster"`
	Items      []Transaction `json:"items"`
}

// ArchiveRequest is the body of POST archives. It moves records of jobs that ended
// before a time to a file, or loads those of a file.
type ArchiveRequest struct {
	// Before is a time in Unix seconds; 0: from the scheduler's retention.
	Before int64 `json:"before,omitempty"`
	// Load is the name of a file in the scheduler's archive directory.
	Load string `json:"load,omitempty"`
}
