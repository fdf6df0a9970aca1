// Package wire defines what several processes of Berth share: the names of labels,
// variables and paths, and the messages between agents and the API role. It imports
// nothing, so that every binary can use it.
package wire

import "strconv"

// Labels and annotations of objects that Berth creates or reads.
const (
	LabelJobID     = "berth.hpc/job-id"  // decimal; on BatchJob, PodGroup, JobSet, Pod
	LabelAttempt   = "berth.hpc/attempt" // decimal status.attempt; on PodGroup, JobSet, Pod
	LabelUser      = "berth.hpc/user"    // User object's name
	LabelPartition = "berth.hpc/partition"
	// LabelManaged on Nodes with the value "false" removes a node from the planner's
	// pool. A taint with this key keeps pods of other schedulers off the pool.
	LabelManaged   = "berth.hpc/managed"
	LabelNamespace = "berth.hpc/user-namespace" // on Namespaces of Slurm users: the user's name

	// LabelLeader, with the value "true", marks the scheduler's pod that is the leader
	// and accepts the connections of the API role.
	LabelLeader = "berth.hpc/leader"

	// LabelFeature plus a feature's name, with the value "true", is the label of Nodes
	// that have the feature.
	LabelFeature = "feature.berth.hpc/"

	// LabelTopology on a Node is its position in the network: switches or blocks from
	// the top level to the one the node is connected to ("spine1.leaf3").
	LabelTopology = "berth.hpc/topology"

	// LabelNodePool on a Node, and on the objects of Karpenter, cluster-autoscaler and Cluster API
	// that bring it, is the NodePool of Berth that requested it.
	LabelNodePool = "berth.hpc/node-pool"

	// Annotations on Nodes: geometry, and a drain reason.
	AnnotationSockets = "berth.hpc/sockets"
	AnnotationCores   = "berth.hpc/cores-per-socket"
	AnnotationThreads = "berth.hpc/threads-per-core"
	AnnotationWeight  = "berth.hpc/weight" // nodes with a lower weight are allocated first
	AnnotationState   = "berth.hpc/state"  // "drain", "down"
	AnnotationReason  = "berth.hpc/reason" // why, by whom, when: "text [user@2026-01-02T03:04:05]"
	// AnnotationCPUManager on a Node is its kubelet's cpuManagerPolicy ("none", "static"), followed
	// by policy options that are on, separated by commas; AnnotationTopologyManager is its
	// topologyManagerPolicy. AnnotationNUMACPUs lists the CPUs of each NUMA node that the
	// kubelet gives to pods, such as "1-15;16-31".
	AnnotationCPUManager      = "berth.hpc/cpu-manager"
	AnnotationTopologyManager = "berth.hpc/topology-manager"
	AnnotationNUMACPUs        = "berth.hpc/numa-cpus"
	// AnnotationDrainedFor is the type of the condition for which a Node was drained.
	AnnotationDrainedFor = "berth.hpc/drained-for"
	// AnnotationRemoval is the announcement that a Node will be removed: when it was seen, and
	// the key of the taint or the type of the condition ("2026-01-02T03:04:05Z KEY").
	AnnotationRemoval = "berth.hpc/removal"
	// AnnotationReboot is the reboot of a Node that an operator has requested: a NodeReboot.
	AnnotationReboot  = "berth.hpc/reboot"
	AnnotationComment = "berth.hpc/comment" // scontrol update nodename=... comment=
	// AnnotationNotice on a BatchJob of srun or salloc is the last message of scontrol
	// notify, after a number that differs from message to message and a blank.
	AnnotationNotice = "berth.hpc/notice"
	// The node's report: the load of its CPUs (0.25), and free memory in MiB.
	AnnotationLoad       = "berth.hpc/cpu-load"
	AnnotationFreeMemory = "berth.hpc/free-memory"
	AnnotationExtra      = "berth.hpc/extra"    // scontrol update nodename=... extra=
	AnnotationCPUBind    = "berth.hpc/cpu-bind" // scontrol update nodename=... cpubind=
	// AnnotationDevices has, in memory only, the resources that drivers of dynamic resource
	// allocation offer on a Node and that were added to those of its kubelet.
	// AnnotationDeviceProblem says, in memory only, what is wrong with the devices that these
	// drivers publish for the Node.
	AnnotationDevices       = "berth.hpc/devices"
	AnnotationDeviceProblem = "berth.hpc/device-problem"
	// AnnotationFeatures is the order in which a Node's features are shown. It adds no
	// features.
	AnnotationFeatures = "berth.hpc/features"
	// AnnotationJob on a bound pod of a workload is the id of the job that represents
	// it. It is written with the binding.
	AnnotationJob = "berth.hpc/job"

	AnnotationName = "berth.hpc/name" // on Reservations: the name that users gave
	// AnnotationNodeName on a Node is its short name, if that cannot be derived, and the name
	// that its NodePool has for it. On a Machine of Cluster API it is that of its Node.
	AnnotationNodeName = "berth.hpc/node-name"

	// AnnotationPodTemplateHash on a job's only pod is the hash of the pod template
	// without the job's id. A job can run in another job's pod with the same hash.
	AnnotationPodTemplateHash = "berth.hpc/pod-template-hash"
	// AnnotationPasswd and AnnotationGroup on a pod are passwd(5) and group(5) of its container.
	AnnotationPasswd = "berth.hpc/passwd"
	AnnotationGroup  = "berth.hpc/group"
	// AnnotationNodeOffset on the pods of a JobSet's replicated job is the number of
	// nodes before its first. The index of a pod's node in the job is this plus the
	// pod's completion index.
	AnnotationNodeOffset = "berth.hpc/node-offset"
	// AnnotationNodes replaces it if the indexes are not consecutive. It lists them
	// (NodeAt); the completion index is the position in the list.
	// On a ProvisioningRequest it is the host list of the nodes that it brings.
	AnnotationNodes = "berth.hpc/nodes"

	// AnnotationApplied on an object of the configuration is the digest of the manifest
	// that was applied last.
	AnnotationApplied = "berth.hpc/applied"

	// Finalizer of BatchJobs. The keeper removes it when nothing of the job is left and
	// its accounting record is stored.
	Finalizer = "berth.hpc/job"

	// SchedulerName is the schedulerName of pods.
	SchedulerName = "berth-scheduler"
	// FieldManager is that of everything Berth's scheduler writes.
	FieldManager = "berth-scheduler"
	// FieldManagerScontrol and FieldManagerSacctmgr are those of what operators change by
	// commands, so that it can be told from what a file or a GitOps controller applied.
	FieldManagerScontrol = "scontrol"
	FieldManagerSacctmgr = "sacctmgr"
	// SystemNamespace is the namespace of Berth's own objects.
	SystemNamespace = "berth-system"
	// DirectoryConfigMap in it says how users are kept in step with a directory, in the
	// entry DirectoryReport.
	DirectoryConfigMap = "berth-directory"
	DirectoryReport    = "report.json"

	// ResourceGRES plus a GRES name (and "-" and a type) is the extended resource that
	// nodes of a local cluster offer for it, such as gres.berth.hpc/gpu.
	ResourceGRES = "gres.berth.hpc/"

	// StateMarker is a file in the state directory of every local cluster.
	StateMarker = "berth-state"
)

// SocketExtension is the name of the extension of a cluster in a kubeconfig whose path is that of
// the Unix socket of a local cluster.
const SocketExtension = "berth.hpc/socket"

// MachineKubeconfigs returns the files in which running local clusters leave the
// kubeconfig of the user with this uid: a cluster that root runs, then one of the user's
// own. They depend on nothing that a program or a login may change, such as HOME.
func MachineKubeconfigs(uid int) []string {
	return []string{
		"/run/berth/" + strconv.Itoa(uid) + ".kubeconfig",
		"/run/user/" + strconv.Itoa(uid) + "/berth.kubeconfig",
	}
}

// Options of a job (translate/job.Job.Options) that scrontab sets.
const (
	OptionCron     = "cron"      // its schedule, see translate/value.ParseCron
	OptionCronText = "cron-text" // its lines in the crontab
)
