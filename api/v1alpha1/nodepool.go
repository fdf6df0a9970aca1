package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool is a set of equal nodes that run only while jobs need them (slurm.conf(5), nodes
// with State=CLOUD). The planner uses the ones that do not run like others, with the time that
// they take to boot.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=berth
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.nodes`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problem`
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodePoolSpec   `json:"spec"`
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolSpec describes the nodes, and what brings and removes them.
//
// +kubebuilder:validation:AtMostOneOf=program;karpenter;provisioningRequest;clusterAPI
type NodePoolSpec struct {
	// Nodes is a host list of the names of all nodes of the pool ("cloud-[001-100]"). A Node
	// object belongs to the pool if it has one of these names, or one of them in the annotation
	// berth.hpc/node-name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Nodes string `json:"nodes"`

	// Resources are what a node has for pods, as in its status: cpu, memory,
	// ephemeral-storage, extended resources such as nvidia.com/gpu or gres.berth.hpc/gpu.
	// A node that comes with less gets no jobs and is removed.
	Resources corev1.ResourceList `json:"resources"`
	// Labels and Taints that the nodes have. Labels may describe features, the network and
	// what partitions select.
	//
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// +kubebuilder:validation:MaxItems=32
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Features of the nodes, in addition to those of labels.
	//
	// +kubebuilder:validation:MaxItems=64
	Features []string `json:"features,omitempty"`
	// Sockets, CoresPerSocket and ThreadsPerCore of a node; 0: as for other nodes without
	// annotations.
	Sockets        int32 `json:"sockets,omitempty"`
	CoresPerSocket int32 `json:"coresPerSocket,omitempty"`
	ThreadsPerCore int32 `json:"threadsPerCore,omitempty"`
	// Weight of the nodes; nodes with less are used first. 0: 1.
	Weight int32 `json:"weight,omitempty"`
	// CostPerHour of a node, a decimal number. Of nodes of equal weight that have to boot,
	// the cheapest are used first.
	//
	// +kubebuilder:validation:MaxLength=32
	CostPerHour string `json:"costPerHour,omitempty"`

	// BootTime is how long a node usually takes from the request until it can run pods, which
	// planned starts include; 0: half of ResumeTimeout.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	BootTime int32 `json:"bootTimeSeconds,omitempty"`
	// ResumeTimeout is how long a node may take; 0: 60. A node that is not ready by then is
	// removed, and jobs that wait for it return to the queue.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	ResumeTimeout int32 `json:"resumeTimeoutSeconds,omitempty"`
	// SuspendTimeout is the time from the removal of a node until it may be requested again;
	// 0: 30.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SuspendTimeout int32 `json:"suspendTimeoutSeconds,omitempty"`
	// SuspendTime is how long a node may be idle before it is removed, unless a job is planned
	// on it; nil or negative: idle nodes stay.
	SuspendTime *int32 `json:"suspendTimeSeconds,omitempty"`

	// Program names the site's programs that bring and remove nodes.
	Program *NodeProgram `json:"program,omitempty"`
	// Karpenter brings and removes the nodes.
	Karpenter *NodeKarpenter `json:"karpenter,omitempty"`
	// ProvisioningRequest: cluster-autoscaler brings the nodes, and removes them.
	ProvisioningRequest *NodeProvisioningRequest `json:"provisioningRequest,omitempty"`
	// ClusterAPI: the nodes are the Machines of a MachineDeployment.
	ClusterAPI *NodeClusterAPI `json:"clusterAPI,omitempty"`
}

// NamesObjects reports whether what brings the nodes chooses the names of the Node objects. The
// annotation berth.hpc/node-name then has the name that the pool lists.
func (s *NodePoolSpec) NamesObjects() bool {
	return s.Karpenter != nil || s.ProvisioningRequest != nil || s.ClusterAPI != nil
}

// NodeProvisioningRequest describes the ProvisioningRequest (autoscaling.x-k8s.io/v1) that is
// created for nodes that are needed together. Its pods request the resources of the pool, so
// that each needs a node of its own.
type NodeProvisioningRequest struct {
	// Namespace of the ProvisioningRequests and their PodTemplates.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// ProvisioningClassName; "": best-effort-atomic-scale-up.autoscaling.x-k8s.io.
	//
	// +kubebuilder:validation:MaxLength=253
	ProvisioningClassName string `json:"provisioningClassName,omitempty"`
	// Parameters of the class.
	//
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]string `json:"parameters,omitempty"`
	// NodeSelector has labels of the node group that brings the nodes. All nodes with these labels
	// belong to the pool.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector"`
}

// NodeClusterAPI names the MachineDeployment (cluster.x-k8s.io) whose replicas are the nodes of
// the pool that are needed. It is in the cluster of the pool, and nothing else may change its
// number of replicas.
type NodeClusterAPI struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment"`
}

// NodeKarpenter describes the NodeClaim (karpenter.sh/v1) that is created for each node. It also
// has the resources, labels and taints of the pool.
type NodeKarpenter struct {
	// NodeClassRef names the class of nodes of the provider.
	NodeClassRef NodeClassRef `json:"nodeClassRef"`
	// Requirements that the instance has to meet. Labels of the pool about its type, zone,
	// region, architecture, operating system and capacity type become requirements too.
	//
	// +kubebuilder:validation:MaxItems=64
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
}

// NodeClassRef names an object of a provider of Karpenter.
type NodeClassRef struct {
	// +kubebuilder:validation:MinLength=1
	Group string `json:"group"`
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// NodeProgram has the paths of the site's programs (slurm.conf(5), ResumeProgram). The
// scheduler runs them as itself, with the nodes as a host list in the only argument. Each may be
// called again with the same nodes.
type NodeProgram struct {
	// Resume brings nodes, Suspend removes them.
	//
	// +kubebuilder:validation:MinLength=1
	Resume string `json:"resume"`
	// +kubebuilder:validation:MinLength=1
	Suspend string `json:"suspend"`
	// ResumeFail is called with nodes that did not come in time; "": nothing is.
	ResumeFail string `json:"resumeFail,omitempty"`
}

// NodePoolStatus has the nodes that run, or are about to change.
type NodePoolStatus struct {
	// Nodes are all nodes that are not powered down, ordered by name.
	Nodes []PoolNode `json:"nodes,omitempty"`
	// Problem says what is wrong with the pool; "": nothing.
	Problem string `json:"problem,omitempty"`
}

// The states of a PoolNode.
const (
	PoolPoweringUp   = "PoweringUp"   // requested
	PoolRunning      = "Running"      // it has been ready
	PoolPoweringDown = "PoweringDown" // its removal was requested
	PoolFailed       = "Failed"       // removed, and not requested again before Retry
	PoolPoweredDown  = "PoweredDown"  // as a node that is not listed; it failed before
)

// PoolNode is the state of a node of a pool. A node that is not listed is powered down.
type PoolNode struct {
	Name string `json:"name"`
	// +kubebuilder:validation:Enum=PoweringUp;Running;PoweringDown;Failed;PoweredDown
	State string           `json:"state"`
	Since metav1.MicroTime `json:"since"` // of State
	// Requested: what brings or removes the node has accepted the request. Otherwise it is
	// repeated.
	Requested bool `json:"requested,omitempty"`
	// PowerDown: the node is to be removed when no job runs there. An operator requested it, or
	// what brought the node removes it.
	PowerDown bool `json:"powerDown,omitempty"`
	// Force: jobs that run there end before, as if the node had failed.
	Force bool `json:"force,omitempty"`
	// Failures is how many times in a row the node did not come.
	Failures int32 `json:"failures,omitempty"`
	// Retry is when a Failed node may be requested again; nil: when an operator resumes it.
	Retry *metav1.MicroTime `json:"retry,omitempty"`
	// Progress says why a requested node has not come yet, if what brings it reports that.
	Progress string `json:"progress,omitempty"`
	// Refused: the node does not come, as Progress says.
	Refused bool `json:"refused,omitempty"`
	// Reason says why the node failed or is removed.
	Reason string `json:"reason,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// Node returns the state of the node with the name; ok is false if it is not listed.
func (s *NodePoolStatus) Node(name string) (n PoolNode, ok bool) {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return s.Nodes[i], true
		}
	}
	return PoolNode{}, false
}

// GetStatus returns the status of the pool; an empty one if p is nil.
func (p *NodePool) GetStatus() *NodePoolStatus {
	if p == nil {
		return &NodePoolStatus{}
	}
	return &p.Status
}
