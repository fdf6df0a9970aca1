package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Account is a node of the account tree (sacctmgr(1)).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=berth
type Account struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AccountSpec `json:"spec,omitempty"`
}

// AccountSpec describes an account. An empty Parent means root.
type AccountSpec struct {
	Parent       string `json:"parent,omitempty"`
	Description  string `json:"description,omitempty"`
	Organization string `json:"organization,omitempty"`
	Limits       Limits `json:"limits,omitempty"`
	// Coordinators are users who may change the account, its children and its users.
	Coordinators []string `json:"coordinators,omitempty"`
	// QOS that jobs of the account may request; empty: those of the parent.
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"defaultQOS,omitempty"`
}

// FairshareParent is the value of Limits.Share for Fairshare=parent: the association has
// the usage and shares of its parent account.
const FairshareParent int64 = 0x7FFFFFFF

// Limits are the limits of an account or QOS; zero or missing: none. TRES have Slurm's
// names (cpu, mem in MiB, node, gres/gpu, gres/gpu:a100).
type Limits struct {
	Share         int64            `json:"fairshare,omitempty"`
	GrpTRES       map[string]int64 `json:"grpTRES,omitempty"`
	MaxTRES       map[string]int64 `json:"maxTRES,omitempty"`
	MaxTRESUser   map[string]int64 `json:"maxTRESPerUser,omitempty"`
	MaxJobs       int32            `json:"maxJobs,omitempty"`
	MaxSubmitJobs int32            `json:"maxSubmitJobs,omitempty"`
	GrpJobs       int32            `json:"grpJobs,omitempty"`
	GrpSubmitJobs int32            `json:"grpSubmitJobs,omitempty"`
	MaxWall       int32            `json:"maxWallMinutes,omitempty"`

	GrpTRESMins    map[string]int64 `json:"grpTRESMins,omitempty"`
	GrpTRESRunMins map[string]int64 `json:"grpTRESRunMins,omitempty"`
	GrpWall        int32            `json:"grpWallMinutes,omitempty"`
	MaxTRESMins    map[string]int64 `json:"maxTRESMins,omitempty"`    // per job
	MaxTRESPerNode map[string]int64 `json:"maxTRESPerNode,omitempty"` // per job
	MinTRES        map[string]int64 `json:"minTRES,omitempty"`        // per job; QOS only
	Priority       int64            `json:"priority,omitempty"`       // association only
	// Of a QOS: per user, per account.
	MaxJobsPerUser          int32            `json:"maxJobsPerUser,omitempty"`
	MaxSubmitJobsPerUser    int32            `json:"maxSubmitJobsPerUser,omitempty"`
	MaxTRESPerAccount       map[string]int64 `json:"maxTRESPerAccount,omitempty"`
	MaxJobsPerAccount       int32            `json:"maxJobsPerAccount,omitempty"`
	MaxSubmitJobsPerAccount int32            `json:"maxSubmitJobsPerAccount,omitempty"`
}

// AccountList is a list of Accounts.
//
// +kubebuilder:object:root=true
type AccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Account `json:"items"`
}

// QOS is a quality of service (sacctmgr(1)).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=qos,scope=Cluster,categories=berth
type QOS struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec QOSSpec `json:"spec,omitempty"`
}

// QOSSpec describes a QOS.
type QOSSpec struct {
	Description string   `json:"description,omitempty"`
	Priority    int64    `json:"priority,omitempty"`
	UsageFactor string   `json:"usageFactor,omitempty"` // decimal; "1"
	Flags       []string `json:"flags,omitempty"`
	Preempt     []string `json:"preempt,omitempty"`
	PreemptMode string   `json:"preemptMode,omitempty"`
	GraceTime   int32    `json:"graceTimeSeconds,omitempty"`
	// PreemptExempt is the number of seconds for which a job is exempt from preemption.
	PreemptExempt int32  `json:"preemptExemptSeconds,omitempty"`
	UsageThres    string `json:"usageThreshold,omitempty"` // decimal; empty: none
	Limits        Limits `json:"limits,omitempty"`
}

// QOSList is a list of QOS.
//
// +kubebuilder:object:root=true
type QOSList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QOS `json:"items"`
}

// Reservation reserves nodes for users or accounts for a time (scontrol(1)).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=resv,categories=berth
type Reservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReservationSpec `json:"spec"`
}

// ReservationSpec describes a reservation. Its nodes are chosen when it is created: Nodes
// then lists them, even if only their number was requested.
type ReservationSpec struct {
	StartTime metav1.Time `json:"startTime"`
	Duration  int32       `json:"durationMinutes"`     // -1: without end
	Nodes     string      `json:"nodes,omitempty"`     // host list
	NodeCount int32       `json:"nodeCount,omitempty"` // requested
	// CoreCounts are the requested numbers of cores: of all nodes together, or of each
	// node in turn.
	CoreCounts []int32 `json:"coreCounts,omitempty"`
	// Cores are the reserved cores by node ("0-1,3"), unless whole nodes are reserved.
	Cores     map[string]string `json:"cores,omitempty"`
	Features  string            `json:"features,omitempty"`
	Partition string            `json:"partition,omitempty"`
	// Users and Accounts that may use the reservation. If all entries of a list begin with
	// "-", all others may use it.
	Users    []string `json:"users,omitempty"`
	Accounts []string `json:"accounts,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	// Licenses that are reserved, by name.
	Licenses map[string]int32 `json:"licenses,omitempty"`
	// Flags by scontrol's names, upper case: MAINT, FLEX, IGNORE_JOBS, DAILY,
	// WEEKLY, WEEKDAY, WEEKEND, HOURLY, OVERLAP, ANY_NODES, ...
	Flags []string `json:"flags,omitempty"`
	// PurgeComp: the reservation is deleted when it was idle for that many seconds.
	PurgeComp     int32  `json:"purgeCompSeconds,omitempty"`
	MaxStartDelay int32  `json:"maxStartDelaySeconds,omitempty"`
	Comment       string `json:"comment,omitempty"`
	// By is the user who created the reservation.
	By string `json:"by,omitempty"`
}

// NameAnnotation has the name in Slurm of a Reservation, an Account, a QOS or a Partition
// if it differs from the object's.
const NameAnnotation = "berth.hpc/name"

// OrderAnnotation is a Partition's position in slurm.conf, a number.
const OrderAnnotation = "berth.hpc/order"

// ObjectNamed returns the name of the object for an account or QOS with the given name in
// Slurm; see ReservationObject.
func ObjectNamed(name string) string { return ReservationObject(name) }

// UserName returns the name in Slurm of an object: that of NameAnnotation if the object's
// name results from it, or else the object's.
func UserName(object string, annotations map[string]string) string {
	if name := annotations[NameAnnotation]; name != "" && ObjectNamed(name) == object {
		return name
	}
	return object
}

// ReservationObject returns the name of the object for a reservation with the given name
// in Slurm, which may have underscores and capitals, unlike names of objects.
func ReservationObject(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

// ReservationList is a list of Reservations.
//
// +kubebuilder:object:root=true
type ReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Reservation `json:"items"`
}
