package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterName is the name of the one Cluster object.
const ClusterName = "berth"

// Cluster has the parameters of the whole cluster (slurm.conf(5)). There is at most one,
// named ClusterName; without it, all defaults apply.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=berth
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec,omitempty"`
}

// ClusterSpec has those parameters of slurm.conf that have an effect, under the same
// names. A nil pointer or zero means the default named in the comment.
type ClusterSpec struct {
	ClusterName string `json:"clusterName,omitempty"` // "berth"

	// Federation of which the cluster is a member; nil: none.
	Federation *Federation `json:"federation,omitempty"`

	FirstJobID int64 `json:"firstJobID,omitempty"`  // 1
	MaxJobID   int64 `json:"maxJobID,omitempty"`    // 2^31-1; ids start over from FirstJobID
	MaxJobs    int32 `json:"maxJobCount,omitempty"` // 100000
	// MinJobAge is how long a finished job stays in the queue, in seconds.
	MinJobAge *int32 `json:"minJobAgeSeconds,omitempty"` // 300
	// KillWait is the time between SIGTERM and SIGKILL, in seconds.
	KillWait      *int32 `json:"killWaitSeconds,omitempty"`      // 30
	OverTimeLimit int32  `json:"overTimeLimitMinutes,omitempty"` // 0
	MaxArraySize  int32  `json:"maxArraySize,omitempty"`         // 1001
	// MaxBytesPerUser limits the scripts and environments (compressed) and descriptions
	// of one user's jobs in the queue; operators have four times as much. -1: no limit.
	MaxBytesPerUser int64 `json:"maxBytesPerUser,omitempty"` // 128 MiB
	// SubmitsPerSecond is how many jobs one user may submit per second, on average;
	// operators ten times as many. -1: no limit.
	SubmitsPerSecond int32 `json:"submitsPerSecond,omitempty"` // 100
	// ResvOverRun is how long jobs may continue after the end of their reservation, in
	// minutes; 2^31-1: UNLIMITED.
	ResvOverRun int32 `json:"resvOverRunMinutes,omitempty"` // 0
	JobRequeue  *bool `json:"jobRequeue,omitempty"`         // true
	// RequeueExit are exit codes with which batch jobs are requeued ("1-3,9"),
	// RequeueExitHold those with which they are also held.
	RequeueExit     string `json:"requeueExit,omitempty"`
	RequeueExitHold string `json:"requeueExitHold,omitempty"`
	// EnforcePartLimits: "NO" (default), "ANY" or "ALL".
	EnforcePartLimits string `json:"enforcePartLimits,omitempty"`

	// AccountingStorageEnforce lists the rules of accounts and QOS that are enforced, as in
	// slurm.conf(5): associations, limits, qos, safe, wckeys, all; none: nothing.
	// Limits, qos and wckeys imply associations, safe implies limits. Without any
	// Account or QOS there is nothing to enforce.
	//
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=associations;limits;qos;safe;wckeys;all;none
	AccountingStorageEnforce []string `json:"accountingStorageEnforce,omitempty"` // associations,limits,qos

	// PropagateResourceLimits are the resource limits of the submitting process
	// that jobs inherit ("ALL", "NONE" or names without RLIMIT_; default ALL),
	// PropagateResourceLimitsExcept those that they do not; at most one of them is set.
	// --propagate overrides both.
	PropagateResourceLimits       []string `json:"propagateResourceLimits,omitempty"`
	PropagateResourceLimitsExcept []string `json:"propagateResourceLimitsExcept,omitempty"`

	MemoryLimits `json:",inline"`

	Priority `json:",inline"`

	// PreemptType: "none" (default), "qos" or "partition_prio". PreemptMode:
	// "OFF" (default), "CANCEL" or "REQUEUE".
	PreemptType string `json:"preemptType,omitempty"`
	PreemptMode string `json:"preemptMode,omitempty"`
	// PreemptExemptTime is the minimum run time of a job before it may be preempted.
	PreemptExemptTime int32 `json:"preemptExemptTimeSeconds,omitempty"` // 0

	// BackfillReservations is how many pending jobs of each partition have a start that
	// no later job may delay; 0: all of them (conservative backfill). nil: 1 (EASY
	// backfill).
	//
	// +kubebuilder:validation:Minimum=0
	BackfillReservations *int32 `json:"backfillReservations,omitempty"`
	// BackfillOrder is the order in which jobs without such a start are considered:
	// "priority" (default); "shortest", the shortest time limit first; or "slowdown", those
	// first that have waited longest in proportion to their time limits.
	//
	// +kubebuilder:validation:Enum=priority;shortest;slowdown
	BackfillOrder string `json:"backfillOrder,omitempty"`

	// Licenses of the whole cluster, by name.
	Licenses map[string]int32 `json:"licenses,omitempty"`

	// WorkloadNamespaces are the namespaces whose pods may name Berth's scheduler: they
	// wait in the queue with the jobs. Users' namespaces are ignored. Empty: none.
	WorkloadNamespaces []string `json:"workloadNamespaces,omitempty"`

	// PrivateData lists the kinds of other users' data that only operators may see (jobs,
	// ..., or all).
	PrivateData []string `json:"privateData,omitempty"`

	// DrainConditions are the types of conditions of Nodes, such as those that
	// node-problem-detector reports, that drain a node while their status is True.
	// [none]: no condition does.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	DrainConditions []string `json:"drainConditions,omitempty"` // KernelDeadlock, ReadonlyFilesystem

	// RemovalNotices are the keys of taints and the types of conditions with which others
	// announce that they will remove a Node, as before a spot instance is taken away. The node
	// is drained, jobs there get the signal of --signal, and after RemovalGrace seconds those
	// that may be requeued are. [none]: nothing announces it.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	RemovalNotices []string `json:"removalNotices,omitempty"` // those of Karpenter, cluster-autoscaler and clouds
	// +kubebuilder:validation:Minimum=0
	RemovalGrace *int32 `json:"removalGraceSeconds,omitempty"` // 20

	// SlurmdTimeout is how many seconds a node may be unreachable until it is down: its jobs are
	// requeued or end as NODE_FAIL. It counts from when Kubernetes calls the node unreachable,
	// which is 40 to 50 seconds after the kubelet's last report. A node whose object is deleted
	// is lost at once. 0: nodes are never down because they do not respond.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65533
	SlurmdTimeout *int32 `json:"slurmdTimeoutSeconds,omitempty"` // 300

	// RebootProgram is the path of the program that scontrol reboot runs in the scheduler's
	// process, with the names of the nodes, separated by commas. Without it nodes cannot be
	// rebooted. ResumeTimeout is the time in seconds until a node must be back, or it is down.
	RebootProgram string `json:"rebootProgram,omitempty"`
	// +kubebuilder:validation:Minimum=0
	ResumeTimeout int32 `json:"resumeTimeoutSeconds,omitempty"` // 60

	// JobEvents are the Kubernetes events that are written about jobs: None, Warnings (lost
	// nodes, failed starts, time limits, memory, preemption), or All (also starts and ends
	// of every job).
	//
	// +kubebuilder:validation:Enum=None;Warnings;All
	JobEvents string `json:"jobEvents,omitempty"` // Warnings

	// MaxTokenLife is the longest lifetime in seconds of a token that users may request for
	// themselves (scontrol token); -1: only administrators may request tokens.
	//
	// +kubebuilder:validation:Minimum=-1
	MaxTokenLife int64 `json:"maxTokenLifeSeconds,omitempty"` // 2592000: 30 days

	// Mail configures the notification of users about their jobs (--mail-type); nil: there
	// are none, and submissions that request them get a warning.
	Mail *MailSettings `json:"mail,omitempty"`

	// SiteScripts run around jobs, tasks and steps.
	SiteScripts `json:",inline"`

	// Devices maps extended resources of the nodes' device plugins, and device classes of
	// drivers of dynamic resource allocation, to generic resources (GRES) and their types.
	// The first row that matches applies. Without one, nvidia.com/gpu, amd.com/gpu and
	// gpu.intel.com/{i915,xe} are gpu, of the type in the label of the vendor's feature
	// discovery (a100 for NVIDIA-A100-SXM4-80GB), nvidia.com/mig-PROFILE are gpu of the
	// type PROFILE, and nvidia.com/gpu.shared are shard.
	Devices []DeviceResource `json:"devices,omitempty"`

	// FeatureLabels are labels of nodes that become features, in addition to those that
	// begin with feature.berth.hpc/. An asterisk at the end matches any text. If the label's
	// value is "true", that text in lower case is the feature
	// (feature.node.kubernetes.io/cpu-cpuid.* results in avx512f); otherwise the value
	// is (node.kubernetes.io/instance-type results in m5.large).
	FeatureLabels []string `json:"featureLabels,omitempty"`

	// Topology describes the network between the nodes; nil: that of the nodes' labels (see
	// Topology.NodeLabels).
	Topology *Topology `json:"topology,omitempty"`

	// Parameters has all other parameters of an imported slurm.conf, for scontrol show
	// config. They have no effect.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// SiteScripts are the site's own programs around jobs (slurm.conf(5), Prolog, ...).
// Each is the path of a program that the job's pods can see, or the text of a script
// that begins with "#!". All of them run as the job's user.
type SiteScripts struct {
	// Prolog runs on every node before the job's processes, Epilog after they have ended.
	Prolog string `json:"prolog,omitempty"`
	Epilog string `json:"epilog,omitempty"`
	// TaskProlog and TaskEpilog run before and after each task and the batch
	// script.
	TaskProlog string `json:"taskProlog,omitempty"`
	TaskEpilog string `json:"taskEpilog,omitempty"`
	// SrunProlog and SrunEpilog run where srun runs, around a step.
	SrunProlog string `json:"srunProlog,omitempty"`
	SrunEpilog string `json:"srunEpilog,omitempty"`
	// PrologEpilogTimeout limits the time of Prolog and Epilog, in seconds; 0: 300.
	//
	// +kubebuilder:validation:Minimum=0
	PrologEpilogTimeout int32 `json:"prologEpilogTimeoutSeconds,omitempty"`
	// DrainOnScriptError drains the node on which a prolog or epilog fails, as Slurm
	// does. As a job's processes can fake a failure, it is for sites that trust their
	// users.
	DrainOnScriptError bool `json:"drainOnScriptError,omitempty"`
}

// Priority sets how priorities are computed (slurm.conf(5), Priority*).
type Priority struct {
	// PriorityType: "basic" (first come, first served) or "multifactor"; "":
	// multifactor if a weight is set, else basic.
	PriorityType string `json:"priorityType,omitempty"`
	// PriorityWeights: age, fairshare, jobsize, partition, qos, assoc.
	PriorityWeights map[string]int64 `json:"priorityWeights,omitempty"`
	// PriorityWeightTRES by TRES name (cpu, mem, gres/gpu); decimals.
	PriorityWeightTRES map[string]string `json:"priorityWeightTRES,omitempty"`

	PriorityDecayHalfLife *int64 `json:"priorityDecayHalfLifeSeconds,omitempty"` // 7 days; 0: no decay
	PriorityCalcPeriod    *int64 `json:"priorityCalcPeriodSeconds,omitempty"`    // 5 minutes
	PriorityMaxAge        *int64 `json:"priorityMaxAgeSeconds,omitempty"`        // 7 days
	// PriorityUsageResetPeriod: NONE (default), NOW, DAILY, WEEKLY, MONTHLY,
	// QUARTERLY, YEARLY.
	PriorityUsageResetPeriod string `json:"priorityUsageResetPeriod,omitempty"`
	PriorityFavorSmall       bool   `json:"priorityFavorSmall,omitempty"`
	// PriorityFlags by slurm.conf's names: ACCRUE_ALWAYS, CALCULATE_RUNNING,
	// DEPTH_OBLIVIOUS, NO_FAIR_TREE, INCR_ONLY, MAX_TRES, NO_NORMAL_ALL,
	// NO_NORMAL_ASSOC, NO_NORMAL_PART, NO_NORMAL_QOS, NO_NORMAL_TRES,
	// SMALL_RELATIVE_TO_TIME.
	PriorityFlags []string `json:"priorityFlags,omitempty"`
}

// MailSettings has a relay that accepts mail without a password, or a URL to which
// mails are posted as JSON. If both are set, the URL is used.
type MailSettings struct {
	SMTP    string `json:"smtp,omitempty"`   // host:port
	From    string `json:"from,omitempty"`   // slurm@Domain
	Domain  string `json:"domain,omitempty"` // of addresses without one (MailDomain)
	Webhook string `json:"webhook,omitempty"`
}

// DeviceResource is a generic resource that a device plugin or driver offers.
type DeviceResource struct {
	Name string `json:"name"`           // gpu
	Type string `json:"type,omitempty"` // a100
	// Resource is an extended resource, such as nvidia.com/gpu. That of a DeviceClass is its
	// extendedResourceName, or deviceclass.resource.kubernetes.io/ with its name.
	Resource string `json:"resource"`
	// NodeLabels are labels of the nodes to which the row applies, such as
	// nvidia.com/gpu.product; empty: all nodes.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
}

// MemoryLimits are the memory defaults and limits of a cluster or partition,
// MiB; nil: not set. A pointer to 0 means no limit.
type MemoryLimits struct {
	DefMemPerCPU  *int64 `json:"defMemPerCPU,omitempty"`
	DefMemPerNode *int64 `json:"defMemPerNode,omitempty"`
	MaxMemPerCPU  *int64 `json:"maxMemPerCPU,omitempty"`
	MaxMemPerNode *int64 `json:"maxMemPerNode,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// Partition is a named set of nodes with limits (slurm.conf(5), PARTITION
// CONFIGURATION) and with the pod template of the jobs that run there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=part,categories=berth
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.nodes`
type Partition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PartitionSpec `json:"spec,omitempty"`
}

// PartitionSpec describes a partition. If no Partition exists, one named "main" with
// all defaults and all nodes is assumed.
type PartitionSpec struct {
	Default bool   `json:"default,omitempty"`
	State   string `json:"state,omitempty"` // UP (default), DOWN, DRAIN, INACTIVE

	// Nodes is a host list of short names ("n[1-4]"), or "ALL"; NodeSelector selects
	// nodes by label as well. Both empty: every managed node.
	Nodes        string                `json:"nodes,omitempty"`
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// Minutes, or -1 for UNLIMITED; 0: UNLIMITED (MaxTime), MaxTime (DefaultTime).
	MaxTime     int32 `json:"maxTime,omitempty"`
	DefaultTime int32 `json:"defaultTime,omitempty"`
	MaxNodes    int32 `json:"maxNodes,omitempty"` // 0: no limit
	MinNodes    int32 `json:"minNodes,omitempty"`
	MaxCPUs     int32 `json:"maxCPUsPerNode,omitempty"`

	MemoryLimits `json:",inline"`

	PriorityJobFactor int32  `json:"priorityJobFactor,omitempty"` // 1
	PriorityTier      int32  `json:"priorityTier,omitempty"`      // 1
	OverSubscribe     string `json:"overSubscribe,omitempty"`     // NO (default), YES, FORCE, EXCLUSIVE
	ExclusiveUser     bool   `json:"exclusiveUser,omitempty"`
	Hidden            bool   `json:"hidden,omitempty"`
	RootOnly          bool   `json:"rootOnly,omitempty"`
	GraceTime         int32  `json:"graceTimeSeconds,omitempty"`
	PreemptMode       string `json:"preemptMode,omitempty"`
	QOS               string `json:"qos,omitempty"`
	// OverTimeLimit in minutes; 2^31-1: UNLIMITED (a year); nil: the cluster's.
	OverTimeLimit *int32 `json:"overTimeLimitMinutes,omitempty"`
	ReqResv       bool   `json:"reqResv,omitempty"` // jobs must name a reservation
	Alternate     string `json:"alternate,omitempty"`
	// TRESBillingWeights as in slurm.conf: "CPU=1.0,Mem=0.25G,GRES/gpu=2.0".
	TRESBillingWeights string `json:"tresBillingWeights,omitempty"`

	AllowAccounts []string `json:"allowAccounts,omitempty"` // empty: all
	DenyAccounts  []string `json:"denyAccounts,omitempty"`
	AllowGroups   []string `json:"allowGroups,omitempty"`
	AllowQOS      []string `json:"allowQOS,omitempty"`
	DenyQOS       []string `json:"denyQOS,omitempty"`

	// SharedPaths are the directories that are the same in the jobs of this partition and
	// on the login nodes. A job's working directory and files must be in one of them.
	SharedPaths []string `json:"sharedPaths,omitempty"`

	// AllowImages are the images that jobs may choose with --container-image; an
	// asterisk matches any text ("nvcr.io/*"). Empty: none. Image, volumes and security
	// of all other jobs are those of Template.
	AllowImages []string `json:"allowImages,omitempty"`

	// PodPerJob gives each job its own pods. Otherwise a pod whose job has ended runs
	// the next job of the same user that would get an identical pod; in this respect
	// the tasks of an array are jobs.
	PodPerJob bool `json:"podPerJob,omitempty"`

	// Agent is the source of the agent and the commands in the pods.
	Agent AgentSource `json:"agent,omitempty"`

	// Template is a core/v1 PodTemplateSpec on which the pods of this partition are
	// based: image of the container "job", volumes, mounts, node selector, tolerations,
	// security context. Users cannot change it. Without one, the default partition's is
	// used, with its agent and shared paths if this partition has none.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	//
	// +optional
	Template runtime.RawExtension `json:"template,omitempty,omitzero"`
}

// AgentSource is the source of the agent's directory (agent, berth and the Slurm-named
// links to it). At most one is set; none: the image of the release, in the way that the
// nodes support.
type AgentSource struct {
	// HostPath is the absolute path of a directory on every node; it is mounted at the same
	// path.
	HostPath string `json:"hostPath,omitempty"`
	// Image is a container image with the directory at /berth/bin. It is mounted as an
	// image volume, or copied by an init container if InitContainer is set.
	Image         string `json:"image,omitempty"`
	InitContainer bool   `json:"initContainer,omitempty"`
}

// PartitionList is a list of Partitions.
//
// +kubebuilder:object:root=true
type PartitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Partition `json:"items"`
}

// User is a user of the cluster: the ids with which its jobs run, and its identities in
// Kubernetes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=berth
// +kubebuilder:printcolumn:name="UID",type=integer,JSONPath=`.spec.uid`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="AdminLevel",type=string,JSONPath=`.spec.adminLevel`
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec UserSpec `json:"spec"`
}

// UserSpec describes a user. The object's name is the user's name.
type UserSpec struct {
	UID    int64   `json:"uid"`
	GID    int64   `json:"gid"`
	Groups []Group `json:"groups,omitempty"` // supplementary groups, and the name of the primary one
	Home   string  `json:"home,omitempty"`
	Shell  string  `json:"shell,omitempty"` // /bin/bash
	// SSHKeys allow the user to log in to the login node: lines of authorized_keys,
	// including options.
	SSHKeys []string `json:"sshKeys,omitempty"`

	// Namespace is the user's own namespace, in which the user's jobs are. The pods of
	// the jobs use the ServiceAccount ServiceAccountName in it.
	Namespace string `json:"namespace"`
	// Identities are the Kubernetes user names of this user, in addition to the
	// ServiceAccount above. Empty: the object's own name.
	Identities []string `json:"identities,omitempty"`

	// Disabled users cannot log in, submit jobs or use the queue. Their pending jobs do not
	// start; running ones go on.
	Disabled bool `json:"disabled,omitempty"`

	// AdminLevel: "None" (default), "Operator" or "Administrator".
	AdminLevel     string   `json:"adminLevel,omitempty"`
	DefaultAccount string   `json:"defaultAccount,omitempty"`
	Accounts       []string `json:"accounts,omitempty"`
	DefaultQOS     string   `json:"defaultQOS,omitempty"`

	// Associations have the user's settings in its accounts (or in a partition with an
	// account). An account in Accounts without an entry here has an association without
	// limits.
	Associations []Association `json:"associations,omitempty"`
	WCKeys       []string      `json:"wckeys,omitempty"`
	DefaultWCKey string        `json:"defaultWCKey,omitempty"`

	// MaxBytes limits the scripts, environments and descriptions of this user's jobs in
	// the queue, instead of the Cluster's maxBytesPerUser. -1: no limit.
	MaxBytes *int64 `json:"maxBytes,omitempty"`
}

// Association is a user's share and limits in an account (sacctmgr(1)).
type Association struct {
	Account   string `json:"account"`
	Partition string `json:"partition,omitempty"` // empty: every partition
	Limits    Limits `json:"limits,omitempty"`
	// QOS that the user may request in the account; empty: those of the account.
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"defaultQOS,omitempty"`
}

// Values of ClusterSpec.JobEvents.
const (
	JobEventsNone     = "None"
	JobEventsWarnings = "Warnings"
	JobEventsAll      = "All"
)

// LabelSource on a User is the name of the source that keeps it in step (docs/admin/identity.md).
const LabelSource = "berth.hpc/source"

// ServiceAccountName is the ServiceAccount of the job pods in a user's namespace.
const ServiceAccountName = "berth-job"

// Group is a group of a user.
type Group struct {
	Name string `json:"name,omitempty"`
	GID  int64  `json:"gid"`
}

// UserList is a list of Users.
//
// +kubebuilder:object:root=true
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []User `json:"items"`
}
