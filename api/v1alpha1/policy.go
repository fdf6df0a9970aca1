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

// AccountSpec describes an account; Parent empty: root.
type AccountSpec struct {
	Parent       string `json:"parent,omitempty"`
	Description  string `json:"description,omitempty"`
	Organization string `json:"organization,omitempty"`
	Limits       Limits `json:"limits,omitempty"`
	// Coordinators are users that may change the account, its children and
	// its users.
	Coordinators []string `json:"coordinators,omitempty"`
	// QOS that jobs of the account may ask for; empty: those of the parent.
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"defaultQOS,omitempty"`
}

// FairshareParent is the value of Limits.Share that means "parent": an
// association's usage and shares are those of the account above.
const FairshareParent int64 = 0x7FFFFFFF

// Limits are the limits of an account or QOS; zero or missing: none. TRES are
// by Slurm's names (cpu, mem in MiB, node, gres/gpu, gres/gpu:a100).
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
	MaxTRESMins    map[string]int64 `json:"maxTRESMins,omitempty"`    // a job
	MaxTRESPerNode map[string]int64 `json:"maxTRESPerNode,omitempty"` // a job
	MinTRES        map[string]int64 `json:"minTRES,omitempty"`        // a job; QOS only
	Priority       int64            `json:"priority,omitempty"`       // association only
	// Of a QOS: for each user, for each account.
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
	// PreemptExempt is how many seconds a job is safe from preemption.
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

// Reservation keeps nodes for somebody for a time (scontrol(1)).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=resv,categories=berth
type Reservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReservationSpec `json:"spec"`
}

// ReservationSpec describes a reservation. Which nodes it has is decided when
// it is made: Nodes then names them, whatever was asked for.
type ReservationSpec struct {
	StartTime metav1.Time `json:"startTime"`
	Duration  int32       `json:"durationMinutes"`     // -1: without end
	Nodes     string      `json:"nodes,omitempty"`     // host list
	NodeCount int32       `json:"nodeCount,omitempty"` // asked for
	// CoreCounts are numbers of cores that were asked for: of all nodes together, or
	// of one node after the other.
	CoreCounts []int32 `json:"coreCounts,omitempty"`
	// Cores that it has, by node ("0-1,3"), where it has not whole nodes.
	Cores     map[string]string `json:"cores,omitempty"`
	Features  string            `json:"features,omitempty"`
	Partition string            `json:"partition,omitempty"`
	// Users and Accounts that may use it; all of a list begin with "-": everybody but those.
	Users    []string `json:"users,omitempty"`
	Accounts []string `json:"accounts,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	// Licenses that it keeps, by name.
	Licenses map[string]int32 `json:"licenses,omitempty"`
	// Flags by scontrol's names, upper case: MAINT, FLEX, IGNORE_JOBS, DAILY,
	// WEEKLY, WEEKDAY, WEEKEND, HOURLY, OVERLAP, ANY_NODES, ...
	Flags []string `json:"flags,omitempty"`
	// PurgeComp: the reservation goes when it has been idle so long, seconds.
	PurgeComp     int32  `json:"purgeCompSeconds,omitempty"`
	MaxStartDelay int32  `json:"maxStartDelaySeconds,omitempty"`
	Comment       string `json:"comment,omitempty"`
	// By is who made it.
	By string `json:"by,omitempty"`
}

// NameAnnotation keeps the name that users know where it differs from the
// object's: of a Reservation, an Account, a QOS or a Partition.
const NameAnnotation = "berth.hpc/name"

// OrderAnnotation is a Partition's place among all, a number: slurm.conf's order.
const OrderAnnotation = "berth.hpc/order"

// ObjectNamed is the name of the object for an account or QOS that users call
// name, as ReservationObject.
func ObjectNamed(name string) string { return ReservationObject(name) }

// UserName is the name by which users know the object: that of NameAnnotation
// if it stands for the object's own.
func UserName(object string, annotations map[string]string) string {
	if name := annotations[NameAnnotation]; name != "" && ObjectNamed(name) == object {
		return name
	}
	return object
}

// ReservationObject is the name of the object for a reservation that users call
// name: Slurm's names have "_" and capitals in them, those of objects have not.
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
