package status

// Limits are the limits of an account, association or QOS, with the members of their
// objects. Zero or missing: no limit.
type Limits struct {
	Share         int64            `json:"fairshare,omitempty"` // FairshareParent: parent
	GrpTRES       map[string]int64 `json:"grpTRES,omitempty"`
	MaxTRES       map[string]int64 `json:"maxTRES,omitempty"`
	MaxTRESUser   map[string]int64 `json:"maxTRESPerUser,omitempty"`
	MaxJobs       int32            `json:"maxJobs,omitempty"`
	MaxSubmitJobs int32            `json:"maxSubmitJobs,omitempty"`
	GrpJobs       int32            `json:"grpJobs,omitempty"`
	GrpSubmitJobs int32            `json:"grpSubmitJobs,omitempty"`
	MaxWall       int32            `json:"maxWallMinutes,omitempty"`

	GrpTRESMins             map[string]int64 `json:"grpTRESMins,omitempty"`
	GrpTRESRunMins          map[string]int64 `json:"grpTRESRunMins,omitempty"`
	GrpWall                 int32            `json:"grpWallMinutes,omitempty"`
	MaxTRESMins             map[string]int64 `json:"maxTRESMins,omitempty"`
	MaxTRESPerNode          map[string]int64 `json:"maxTRESPerNode,omitempty"`
	MinTRES                 map[string]int64 `json:"minTRES,omitempty"`
	Priority                int64            `json:"priority,omitempty"`
	MaxJobsPerUser          int32            `json:"maxJobsPerUser,omitempty"`
	MaxSubmitJobsPerUser    int32            `json:"maxSubmitJobsPerUser,omitempty"`
	MaxTRESPerAccount       map[string]int64 `json:"maxTRESPerAccount,omitempty"`
	MaxJobsPerAccount       int32            `json:"maxJobsPerAccount,omitempty"`
	MaxSubmitJobsPerAccount int32            `json:"maxSubmitJobsPerAccount,omitempty"`
}

// FairshareParent is the value of Share for Fairshare=parent.
const FairshareParent int64 = 0x7FFFFFFF

// AcctAccount is an account in accounting.
type AcctAccount struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // of the object; empty: a new object

	Parent       string   `json:"parent,omitempty"`
	Description  string   `json:"description,omitempty"`
	Organization string   `json:"organization,omitempty"`
	Limits       Limits   `json:"limits,omitzero"`
	Coordinators []string `json:"coordinators,omitempty"`
	QOS          []string `json:"qos,omitempty"`
	DefaultQOS   string   `json:"defaultQOS,omitempty"`
}

// AcctUser is a user in accounting.
type AcctUser struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	UID     int64  `json:"uid"`

	AdminLevel     string            `json:"adminLevel,omitempty"`
	DefaultAccount string            `json:"defaultAccount,omitempty"`
	Accounts       []string          `json:"accounts,omitempty"`
	DefaultQOS     string            `json:"defaultQOS,omitempty"`
	Associations   []AcctAssociation `json:"associations,omitempty"`
	WCKeys         []string          `json:"wckeys,omitempty"`
	DefaultWCKey   string            `json:"defaultWCKey,omitempty"`
}

// AssociationKey names the association of a user with an account. Without a
// user it is that of the account itself.
type AssociationKey struct{ Account, User string }

// AcctAssociation holds the settings of a user in an account.
type AcctAssociation struct {
	Account    string   `json:"account"`
	Partition  string   `json:"partition,omitempty"`
	Limits     Limits   `json:"limits,omitzero"`
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"defaultQOS,omitempty"`
}

// AcctQOS is a QOS in accounting.
type AcctQOS struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`

	Description   string   `json:"description,omitempty"`
	Priority      int64    `json:"priority,omitempty"`
	UsageFactor   string   `json:"usageFactor,omitempty"`
	UsageThres    string   `json:"usageThreshold,omitempty"`
	Flags         []string `json:"flags,omitempty"`
	Preempt       []string `json:"preempt,omitempty"`
	PreemptMode   string   `json:"preemptMode,omitempty"`
	PreemptExempt int32    `json:"preemptExemptSeconds,omitempty"`
	GraceTime     int32    `json:"graceTimeSeconds,omitempty"`
	Limits        Limits   `json:"limits,omitzero"`
}

// AcctState is the response to GET associations: accounts, users and QOS by name.
type AcctState struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Cluster    string        `json:"cluster"`
	Host       string        `json:"host,omitempty"`
	Accounts   []AcctAccount `json:"accounts"`
	Users      []AcctUser    `json:"users"`
	QOS        []AcctQOS     `json:"qos"`
}

// AcctChange replaces or deletes one object, whose version must not have changed.
type AcctChange struct {
	Delete  bool         `json:"delete,omitempty"`
	Account *AcctAccount `json:"account,omitempty"`
	User    *AcctUser    `json:"user,omitempty"`
	QOS     *AcctQOS     `json:"qos,omitempty"`
}

// AcctChanges is the body of POST associations. All of the changes are made, or none.
// Check is a dry run.
type AcctChanges struct {
	Kind       string       `json:"kind"`
	APIVersion string       `json:"apiVersion"`
	Check      bool         `json:"check,omitempty"`
	Items      []AcctChange `json:"items"`
}
