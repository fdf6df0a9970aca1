package authz

// The kinds of objects.
const (
	Job         Object = "job"
	Step        Object = "step"
	Node        Object = "node"
	Partition   Object = "partition"
	Reservation Object = "reservation"
	Account     Object = "account"
	UserObject  Object = "user"
	QOS         Object = "qos"
	Cluster     Object = "cluster"
	Records     Object = "records"
	Token       Object = "token" // with which requests are made as its user
)

// The actions that are not verbs of operations.
const (
	Create  Action = "create"
	Read    Action = "read"    // as a row of the queue API
	Script  Action = "script"  // and environment
	Pods    Action = "pods"    // the state of the pods and why they do not start
	Events  Action = "events"  // jobs/ID/attach: the state of the job
	Attach  Action = "attach"  // jobs/ID/attach: steps, input and output
	Delete  Action = "delete"  // of the object, which cancels the job
	Touch   Action = "touch"   // metadata of the object that does not belong to Berth
	Update  Action = "update"  // of the fields: see Fields
	Free    Action = "free"    // release of a hold that an operator placed
	Level   Action = "level"   // a user's AdminLevel
	Reset   Action = "reset"   // of statistics
	Archive Action = "archive" // of old records, and their restoration
	Usage   Action = "usage"
	Changes Action = "transactions"
	Outages Action = "outages"
	Shares  Action = "shares"
	Figures Action = "statistics"
)

// Refusals in Slurm's words (observed with 22.05.8).
const (
	Denied       = "Access/permission denied"
	InvalidUser  = "Invalid user id"
	NoPermission = "Permission denied" // of reboots
)

type grants = map[Role]Grant

// Sets of grants that several rules have.
var (
	// open: every user, unless PrivateData says otherwise.
	open = grants{User: Public, Owner: Allow, Coordinator: Allow, Operator: Allow, Administrator: Allow, Process: Allow}
	// rows: as open, but coordinators have no more rights than other users.
	rows = grants{
		User: Public, Owner: Allow, Coordinator: Public, Operator: Allow, Administrator: Allow, Process: Allow,
	}
	// known: all authenticated callers.
	known = grants{
		Anyone: Allow, User: Allow, Owner: Allow, Coordinator: Allow, Operator: Allow, Administrator: Allow,
		Process: Allow,
	}
	// listed: all authenticated callers, unless PrivateData says otherwise.
	listed = grants{
		Anyone: Public, User: Public, Owner: Public, Coordinator: Public, Operator: Allow, Administrator: Allow,
		Process: Allow,
	}
	// tied: callers who may change the job; own: without coordinators.
	tied          = grants{Owner: Allow, Coordinator: Allow, Operator: Allow, Administrator: Allow, Process: Allow}
	own           = grants{Owner: Allow, Operator: Allow, Administrator: Allow, Process: Allow}
	operators     = grants{Operator: Allow, Administrator: Allow, Process: Allow}
	administrator = grants{Administrator: Allow, Process: Allow}
)

// rules is the table of actions. TestAuthorization (test/e2e) checks all of it on a
// live API server.
var rules = []Rule{
	{Object: Job, Action: Create, Roles: grants{Owner: Allow, Administrator: Allow, Process: Allow}, Refusal: Denied,
		Note: "an administrator submits as the owner of the namespace"},
	{Object: Job, Action: Read, Roles: rows, Private: "jobs", Refusal: Denied},
	{Object: Job, Action: Script, Roles: own, Refusal: Denied, Note: "script and environment"},
	{Object: Job, Action: Pods, Roles: own, Refusal: Denied},
	{Object: Job, Action: Events, Roles: own, Refusal: Denied},
	{Object: Job, Action: Attach, Roles: grants{Owner: Allow}, Refusal: Denied,
		Note: "nobody runs anything in another user's name"},
	{Object: Job, Action: "cancel", Roles: tied, Refusal: Denied},
	{Object: Job, Action: "signal", Roles: tied, Refusal: Denied},
	{Object: Job, Action: "hold", Roles: tied, Refusal: InvalidUser,
		Note: "an operator's hold is not the owner's to release"},
	{Object: Job, Action: "uhold", Roles: tied, Refusal: InvalidUser},
	{Object: Job, Action: "release", Roles: tied, Refusal: InvalidUser},
	{Object: Job, Action: Free, Roles: operators, Refusal: Denied,
		Note: "release of an operator's hold, or putting another in its place"},
	{Object: Job, Action: "suspend", Roles: operators, Refusal: Denied},
	{Object: Job, Action: "resume", Roles: operators, Refusal: Denied},
	{Object: Job, Action: "requeue", Roles: tied, Refusal: Denied},
	{Object: Job, Action: "requeuehold", Roles: tied, Refusal: Denied, Note: "an operator's hold stays one"},
	{Object: Job, Action: "top", Roles: grants{Owner: Optional, Operator: Allow, Administrator: Allow, Process: Allow},
		Option: "SchedulerParameters=enable_user_top", Refusal: Denied},
	{Object: Job, Action: "notify", Roles: own, Refusal: InvalidUser},
	{Object: Job, Action: "complete", Roles: own, Refusal: Denied, Note: "the end of an allocation of srun or salloc"},
	{Object: Job, Action: Update, Roles: tied, Refusal: InvalidUser, Note: "field by field, below"},
	{Object: Job, Action: Delete,
		Roles:   grants{Owner: Allow, Operator: Allow, Administrator: Allow, Controller: Allow, Process: Allow},
		Refusal: Denied},
	{Object: Job, Action: Touch, Roles: grants{Owner: Allow, Operator: Allow, Administrator: Allow, Controller: Limited,
		Process: Allow}, Refusal: Denied,
		Note: "labels, finalizers, owners and Berth's annotations are the cluster's; controllers change nothing of the spec"},

	{Object: Step, Action: Read, Roles: rows, Private: "jobs", Refusal: Denied},
	{Object: Step, Action: "cancel", Roles: tied, Refusal: Denied},
	{Object: Step, Action: "signal", Roles: tied, Refusal: Denied},
	{Object: Step, Action: Update, Roles: tied, Refusal: Denied, Note: "the time limit"},

	{Object: Node, Action: Read, Roles: listed, Private: "nodes", Refusal: Denied},
	{Object: Node, Action: Update, Roles: operators, Refusal: InvalidUser},
	{Object: Node, Action: "reboot", Roles: operators, Refusal: NoPermission, Note: "and its cancellation"},
	{Object: Partition, Action: Read, Roles: listed, Private: "partitions", Refusal: Denied},
	{Object: Partition, Action: Create, Roles: administrator, Refusal: InvalidUser},
	{Object: Partition, Action: Update, Roles: administrator, Refusal: InvalidUser},
	{Object: Partition, Action: Delete, Roles: administrator, Refusal: InvalidUser},
	{Object: Reservation, Action: Read, Roles: listed, Private: "reservations", Refusal: Denied},
	{Object: Reservation, Action: Create, Roles: operators, Refusal: InvalidUser},
	{Object: Reservation, Action: Update, Roles: operators, Refusal: InvalidUser},
	{Object: Reservation, Action: Delete, Roles: operators, Refusal: InvalidUser},

	{Object: Account, Action: Read, Roles: open, Private: "accounts", Refusal: Denied},
	{Object: Account, Action: Update, Roles: grants{Coordinator: Limited, Operator: Allow, Administrator: Allow,
		Process: Allow}, Refusal: Denied,
		Note: "a coordinator: accounts below those it coordinates"},
	{Object: UserObject, Action: Read, Roles: open, Private: "users", Refusal: Denied},
	{Object: UserObject, Action: Update, Roles: grants{Coordinator: Limited, Operator: Limited, Administrator: Allow,
		Process: Allow}, Refusal: Denied,
		Note: "a coordinator: associations with its accounts; an operator: all but the level. Identity, uid, groups and keys are changed in the User object only"},
	{Object: UserObject, Action: Level, Roles: administrator, Refusal: Denied, Note: "AdminLevel"},
	{Object: Token, Action: Create, Roles: grants{Owner: Limited, Administrator: Allow, Process: Allow},
		Refusal: InvalidUser, Note: "scontrol token; a user's own: of at most the Cluster's maxTokenLifeSeconds"},
	{Object: QOS, Action: Read, Roles: known, Refusal: Denied},
	{Object: QOS, Action: Update, Roles: operators, Refusal: Denied},

	{Object: Cluster, Action: Read, Roles: known, Refusal: Denied},
	{Object: Cluster, Action: Figures, Roles: known, Refusal: Denied, Note: "sdiag"},
	{Object: Cluster, Action: Reset, Roles: operators, Refusal: Denied, Note: "sdiag --reset"},
	{Object: Cluster, Action: Shares, Roles: open, Private: "usage", Refusal: Denied, Note: "sshare, sprio"},
	{Object: Records, Action: Read, Roles: open, Private: "jobs", Refusal: Denied, Note: "sacct"},
	{Object: Records, Action: Usage, Roles: open, Private: "usage", Refusal: Denied, Note: "sreport"},
	{Object: Records, Action: Outages, Roles: open, Private: "events", Refusal: Denied},
	{Object: Records, Action: Changes, Roles: known, Refusal: Denied},
	{Object: Records, Action: Archive, Roles: administrator, Refusal: Denied},
}
