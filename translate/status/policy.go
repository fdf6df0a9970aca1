package status

// Priority is the priority of one pending job and its factors (GET priorities), as
// sprio shows them. Weighted factors are not rounded; normalized ones are between 0
// and 1.
type Priority struct {
	ID        int64  `json:"id"`
	Array     string `json:"array,omitempty"` // task id or set, as squeue shows it
	User      string `json:"user"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition"`
	QOS       string `json:"qos,omitempty"`
	Priority  int64  `json:"priority"`
	Direct    bool   `json:"direct,omitempty"` // set explicitly: the factors are 0

	Age       Factor            `json:"age"`
	Assoc     Factor            `json:"assoc"`
	FairShare Factor            `json:"fairshare"`
	JobSize   Factor            `json:"jobsize"`
	Part      Factor            `json:"part"`
	QOSTerm   Factor            `json:"qosTerm"`
	TRES      map[string]Factor `json:"tres,omitempty"` // by TRES name
	Site      int64             `json:"site,omitempty"`
	Nice      int64             `json:"nice,omitempty"`
}

// Factor is one factor of a priority.
type Factor struct {
	Normalized float64 `json:"normalized"`
	Weighted   float64 `json:"weighted"`
}

// PriorityList is the response to GET priorities.
type PriorityList struct {
	Kind       string             `json:"kind"`
	APIVersion string             `json:"apiVersion"`
	Weights    map[string]float64 `json:"weights"` // age, assoc, fairshare, jobsize, partition, qos
	WeightTRES map[string]float64 `json:"weightTRES,omitempty"`
	Items      []Priority         `json:"items"`
}

// Share is one association in the tree of accounts (GET shares), as sshare shows it.
// Items are in the order of the tree.
type Share struct {
	Account string `json:"account"`
	User    string `json:"user,omitempty"` // empty: the account itself
	Depth   int    `json:"depth"`          // 0: root

	Parent      bool             `json:"parent,omitempty"` // Fairshare=parent
	RawShares   int64            `json:"rawShares"`
	NormShares  float64          `json:"normShares"`
	RawUsage    float64          `json:"rawUsage"` // TRES-seconds, decayed
	NormUsage   float64          `json:"normUsage"`
	EffectvUse  float64          `json:"effectvUsage"`
	FairShare   float64          `json:"fairShare"`
	LevelFS     float64          `json:"levelFS"` // Fair Tree; infinite: -1
	GrpTRESMins map[string]int64 `json:"grpTRESMins,omitempty"`
	RunMins     map[string]int64 `json:"tresRunMins,omitempty"` // by TRES name
	WallMins    float64          `json:"wallMins,omitempty"`    // run time of its jobs, decayed
}

// ShareList is the response to GET shares.
type ShareList struct {
	Kind       string  `json:"kind"`
	APIVersion string  `json:"apiVersion"`
	FairTree   bool    `json:"fairTree"`
	Items      []Share `json:"items"`
	// QOSUsage is the usage of jobs of each QOS, like Share.RawUsage.
	QOSUsage map[string]float64 `json:"qosUsage,omitempty"`
	// QOSWallMins is the run time of jobs of each QOS, like Share.WallMins.
	QOSWallMins map[string]float64 `json:"qosWallMins,omitempty"`
}
