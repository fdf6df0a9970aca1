package status

// AcctEvent is a stretch of time in which a node took no jobs, or, without a node,
// in which the cluster had the same resources.
type AcctEvent struct {
	Node   string `json:"node,omitempty"`
	Nodes  string `json:"nodes,omitempty"` // of the whole cluster, folded
	Start  int64  `json:"start"`           // Unix seconds
	End    int64  `json:"end,omitempty"`   // 0: it goes on
	State  string `json:"state,omitempty"` // "DOWN", "DOWN*", "DRAIN"
	Reason string `json:"reason,omitempty"`
	User   string `json:"user,omitempty"` // who changed the node's state
	UserID int64  `json:"uid,omitempty"`
	TRES   string `json:"tres,omitempty"`
}

// EventQuery asks for the events of a stretch of time, Unix seconds; 0: no end
// on that side. Open: those alone that go on.
type EventQuery struct {
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	Open  bool  `json:"open,omitempty"`
}

// EventList answers GET events, by node and start.
type EventList struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Time       int64       `json:"time"` // the server's clock, Unix seconds
	Cluster    string      `json:"cluster"`
	Items      []AcctEvent `json:"items"`
}

// Transaction is a change that somebody made with sacctmgr.
type Transaction struct {
	At     int64  `json:"at"` // Unix seconds
	Action string `json:"action"`
	Actor  string `json:"actor"`
	Where  string `json:"where"`
	Info   string `json:"info"`
	// User and Account are those concerned, where one is.
	User    string `json:"user,omitempty"`
	Account string `json:"account,omitempty"`
}

// TransactionQuery asks for the changes of a stretch of time, as EventQuery.
type TransactionQuery struct {
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
}

// TransactionList answers GET transactions, the oldest first.
type TransactionList struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Cluster    string        `json:"cluster"`
	Items      []Transaction `json:"items"`
}

// ArchiveRequest is POST archives. It takes out records of jobs that ended
// before, or brings those of a file back.
type ArchiveRequest struct {
	// Before is an instant, Unix seconds; 0: as the scheduler's retention says.
	Before int64 `json:"before,omitempty"`
	// Load is the name of a file in the scheduler's archive folder.
	Load string `json:"load,omitempty"`
}
