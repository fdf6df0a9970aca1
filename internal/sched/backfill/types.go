// Package backfill plans the queue: from a snapshot of nodes and jobs it computes which
// jobs start now, on which nodes and CPUs, and when each of the others will start. It is
// pure: it uses no clock, no I/O and no randomness, so that the same snapshot always
// results in the same plan.
//
// A CPU is a hardware thread, as in Slurm. Memory is in MiB, times are Unix seconds, and
// durations are in seconds.
package backfill

import "math"

// Forever is a time or duration without end.
const Forever int64 = math.MaxInt64

// Snapshot is everything that a plan depends on. Plan does not modify it.
type Snapshot struct {
	Now     int64
	Nodes   []Node
	Running []Running
	Pending []Job // in any order
	// AdvanceReservations keep nodes for some jobs, or from all jobs, for a period:
	// Slurm's reservations, maintenance, outages.
	AdvanceReservations []AdvanceReservation
	Licenses            []License
	// Limits are the limits to which Job.Limits refers.
	Limits []Limit
	// Overtime is how long a running job that should have ended is expected to continue
	// after Now, in seconds; at least 1.
	Overtime int64
	Policy   Policy
}

// AdvanceReservation keeps nodes for the jobs that name it, for a period.
type AdvanceReservation struct {
	// Name is the name to which Job.Reservation refers; empty: no job may use the nodes (an
	// outage).
	Name       string
	Start, End int64 // [Start, End); Forever: no end
	Nodes      NodeSet
	// Cores are the reserved CPUs of other nodes, by node number. All jobs may use the
	// other CPUs of these nodes.
	Cores map[int]CPUSet
	// Flex allows the reservation's jobs to use other nodes and times too.
	Flex bool
	// AnyNodes allows the reservation's jobs to use any nodes while it is active.
	AnyNodes bool
	// Licenses are kept for the reservation's jobs, those that its running jobs hold
	// included.
	Licenses []License
}

// License is a number of units of a license: in a Snapshot those of the cluster, of which
// running jobs hold some; elsewhere the requested or reserved ones.
type License struct {
	Name  string
	Total int64
}

// Limit is a limit on the total usage of the jobs that refer to it. A job that would
// exceed it does not start, and gets Reason and no reservation.
type Limit struct {
	Reason   string // QOSMaxJobsPerUser, AssocGrpCpuLimit, ...
	Quantity Quantity
	GRES     string // name, or name:type, if Quantity is QuantityGRES
	Left     int64  // what running jobs leave of the limit
}

// Quantity is the quantity that a Limit restricts.
type Quantity int

// The quantities.
const (
	QuantityJobs Quantity = iota
	QuantityCPUs
	QuantityNodes
	QuantityMemory // MiB
	QuantityGRES
	QuantityBilling // as Job.Bill returns
)

// Policy determines how the queue is planned. FCFS, EASY, SJBF and Conservative return
// common policies.
type Policy struct {
	// Reservations is the number of jobs of each partition that get a reservation, which no
	// later job may delay, if they cannot start now. 1 is EASY backfill; 0 is conservative
	// backfill, in which every job gets one.
	Reservations int
	// PlanAll plans a start for the jobs without a reservation too, after the others. Such
	// a start is an estimate.
	PlanAll bool
	// NoBackfill starts no job after one in the queue that cannot start (FCFS).
	NoBackfill bool
	// BackfillOrder is the order in which the jobs of a partition are considered once all of
	// its reservations are used. It delays no job that has a reservation.
	BackfillOrder Order
	// BootEagerly makes nodes boot for a job also if nodes that run will be free for it sooner,
	// as autoscalers do that do not know the plan.
	BootEagerly bool

	// For tests: forceCoarse uses fixed slots for small clusters too, and noDominance makes
	// searches that do not share bounds.
	forceCoarse, noDominance bool
	// forceExact, for tests, makes all decisions on an exact profile.
	forceExact bool
}

// Order is an order in which jobs without a reservation are considered.
type Order int

// The orders. Jobs that an order does not distinguish are considered in the queue's order.
const (
	// ByPriority is the queue's order.
	ByPriority Order = iota
	// ShortestFirst considers the jobs with the shortest time limits first (SJBF).
	ShortestFirst
	// BySlowdown considers the jobs first that have waited longest in proportion to
	// their time limits (largest expansion factor first; see Job.Since). Short jobs start early,
	// as with ShortestFirst, but a long one that waits comes before them in the end.
	BySlowdown
)

// DefaultPolicy returns the policy of a scheduler without configuration. EASY's single
// reservation for each partition prevents starvation and leaves the most room for
// backfill. Every other job still gets a planned start.
func DefaultPolicy() Policy { return Policy{Reservations: 1, PlanAll: true} }

// FCFS returns the policy first come, first served: no job starts before the jobs ahead of
// it in the queue.
func FCFS() Policy { return Policy{Reservations: 1, NoBackfill: true} }

// EASY returns the policy in which jobs may start early as long as they do not delay the
// first waiting job of their partition.
func EASY() Policy { return Policy{Reservations: 1} }

// SJBF returns EASY with the shortest job backfilled first.
func SJBF() Policy { return Policy{Reservations: 1, BackfillOrder: ShortestFirst} }

// LXBF returns EASY with the job backfilled first that has waited longest in proportion to its
// time limit.
func LXBF() Policy { return Policy{Reservations: 1, BackfillOrder: BySlowdown} }

// Conservative returns the policy that gives every job a reservation.
func Conservative() Policy { return Policy{} }

// Node is one node of the cluster. Its number is its index in Snapshot.Nodes.
type Node struct {
	Name string
	// Position is the position of the node in the cluster, which determines which nodes are
	// contiguous and the order of a job's tasks. Nodes with low numbers are used first. If
	// all positions are 0, the numbers of the nodes are their positions.
	Position int
	// CPUs is the number of CPUs; their ids start at 0, and ThreadsPerCore consecutive ids
	// are one core. ThreadsPerCore 0 means 1.
	CPUs           int
	ThreadsPerCore int
	// Sockets is the number of sockets over which the cores are distributed evenly, in the
	// order of their ids. 0, or a number that does not divide the cores, means 1.
	Sockets int
	// Alignment is what the node's kubelet requires of the CPUs of a job, and NUMA the CPUs of
	// each NUMA node that it can give to pods. NUMASize is the number of CPUs that each NUMA
	// node has together with those that the kubelet reserves; 0: as many as NUMA has.
	Alignment Alignment
	NUMA      []CPUSet
	NUMASize  int
	Memory    int64
	GRES      []GRES
	// AllGRES also has the devices that cannot be used at present. A job that needs those waits
	// for them and is not refused. nil: as GRES.
	AllGRES []GRES
	// TopologyPath names the switches or blocks above the node, from the root of the
	// topology to the leaf. Nodes without a path share a leaf.
	TopologyPath []string
	// Unavailable: no job may start on the node (down, drained, cordoned, unknown).
	Unavailable bool
	// Boot is how many seconds the node takes until it can run jobs, if it is requested now or
	// was requested before; 0: it runs.
	Boot int64
	// UsedCPUs, UsedMemory and UsedGRES are the resources of pods that are not jobs (system
	// pods), which are never free for jobs.
	UsedCPUs   int
	UsedMemory int64
	UsedGRES   []GRES
}

// GRES is a count of one generic resource. A node lists each name and type
// once; a request with an empty Type is satisfied by any type of that name.
type GRES struct {
	Name  string
	Type  string
	Count int64
}

// Running is a job that holds resources. Completing jobs are included.
type Running struct {
	ID int64
	// End is the time at which the job ends at the latest. It may be in the past (see
	// Snapshot.Overtime); Forever: unknown.
	End        int64
	Allocation []NodeAllocation
	// Exclusive: no other job may run on its nodes.
	Exclusive bool
	// User, UserExclusive and Share are those of Job.
	User          int64
	UserExclusive bool
	Share         int
	// Licenses are the licenses that the job holds, by name.
	Licenses []License
	// Reservation is the advance reservation in which the job runs; empty: none.
	Reservation string
}

// NodeAllocation is the resources that a running job holds on one node.
type NodeAllocation struct {
	Node   int
	CPUs   CPUSet
	Memory int64
	GRES   []GRES
}

// Job is one pending job.
type Job struct {
	ID       int64
	Priority int64
	Submit   int64 // orders jobs of equal priority; any unit
	Begin    int64 // earliest start; 0: now
	Since    int64 // since when the job could have started, for BySlowdown; 0: now
	Duration int64 // time limit in seconds; Forever: none
	// Partition is a number that the jobs of a partition have in common. The first of them
	// that waits for nodes has reason Resources, the others Priority.
	Partition int
	// Blocked is Slurm's reason why the job is not considered at all (Dependency,
	// JobHeldUser, PartitionDown, ...); empty: it is considered.
	Blocked string

	// Group is a number that jobs have in common which start at the same time or not at
	// all, the components of a heterogeneous job; 0: none. All of them are considered in
	// place of the first of them in queue order.
	Group int64
	// MinDuration is the shortest time limit that the job accepts in order to start earlier
	// (--time-min); 0: Duration. Deadline is the time by which it must have ended; 0: none.
	MinDuration int64
	Deadline    int64
	// NoReserve: the job gets no reservation that later jobs must respect.
	NoReserve bool
	// Reservation is the name of the AdvanceReservation whose nodes the job uses; empty:
	// none. The job starts while the reservation is active, and is planned to end with it
	// at the latest.
	Reservation string
	// ChoiceReservations, if not nil, replaces Reservation for each choice of nodes: 0 is
	// Eligible, the others are Alternatives. It is used for magnetic reservations.
	ChoiceReservations []string
	Licenses           []License
	Limits             []int // indexes in Snapshot.Limits
	// Bill returns the job's usage of limits with QuantityBilling on these nodes, or its
	// minimum if nodes is nil. If Bill is nil, the usage is the number of CPUs.
	Bill func(nodes []Assignment) int64

	// Eligible is the set of nodes on which the job may run, by partition, features and
	// exclusions; nil: all nodes.
	Eligible *NodeSet
	// Alternatives are further sets of eligible nodes, for the other partitions of a job
	// that names several. The job gets the set with the earliest start; of equal starts the
	// first.
	Alternatives []*NodeSet
	Required     []int // nodes that the job must get

	MinNodes int // at least 1
	// MaxNodes is the maximum number of nodes; 0: the smallest number that is enough. A job
	// with a range gets as many nodes of it as possible (sbatch(1), --nodes).
	MaxNodes int
	// Tasks is the number of tasks on all nodes together; 0: one on each node. Each task
	// has CPUsPerTask CPUs.
	Tasks        int
	TasksPerNode int // maximum number of tasks on a node; 0: no limit
	// ExactPerNode: every node gets exactly TasksPerNode tasks.
	ExactPerNode bool
	CPUsPerTask  int // 0: 1
	MinCPUs      int // minimum number of CPUs on each node
	// Overcommit: the job gets the CPUs of one task on each node, however many tasks run
	// there. Limits on the tasks of a core or socket do not apply (sbatch(1)).
	Overcommit bool

	MemPerNode  int64
	MemPerCPU   int64
	AllMemory   bool   // --mem=0
	GRES        []GRES // on each node
	GRESPerTask []GRES
	// GRESTotal limits entries of GRES to a total on all nodes, of which each node has at
	// least one.
	GRESTotal []GRES
	Exclusive bool // whole nodes, with all of their GRES

	// User is the owner of the job. UserExclusive: only jobs of the same user may run on its
	// nodes.
	User          int64
	UserExclusive bool
	// Share is the number of jobs that may have the same CPU, all of which
	// must allow it (OverSubscribe); 0: 1.
	Share int

	// ConstraintCounts are sets of nodes, with the number of nodes that the job must get of
	// each (--constraint with counts). Each node counts for one set.
	ConstraintCounts []ConstraintCount
	// SpreadJob: the job gets as many nodes as possible, with its tasks distributed evenly.
	// UseMinNodes: of a range of nodes, the job gets the smallest number that is enough.
	SpreadJob, UseMinNodes bool
	// Contiguous: the positions of the nodes are consecutive. Switches is the maximum number
	// of leaf switches of the nodes; 0: no limit. From SwitchesUntil on (0: never) the limit
	// does not apply.
	Contiguous    bool
	Switches      int
	SwitchesUntil int64
	// Segment is the number of nodes of a segment, all below one leaf switch; 0: no
	// segments. SegmentLayout determines how the segments are placed.
	Segment       int
	SegmentLayout SegmentLayout

	// SocketsPerNode, CoresPerSocket and ThreadsPerCore are minimums for each node;
	// TasksPerSocket and TasksPerCore are maximums. 0: no limit.
	SocketsPerNode, CoresPerSocket, ThreadsPerCore int
	TasksPerSocket, TasksPerCore                   int
	// CoreDistribution is the order in which cores of the sockets of a node are chosen.
	CoreDistribution CoreDistribution
	// NoMultithread: tasks use one thread of each core (--hint=nomultithread).
	NoMultithread bool

	// Copies is the number of identical pending jobs, the tasks of an array; 0: one. The
	// plan has a decision with this ID for each of them that starts now, and then one or
	// more for those that do not.
	Copies int
}

// ConstraintCount is a set of nodes, and the number of them that a job must get.
type ConstraintCount struct {
	Nodes *NodeSet
	Count int
}

// CoreDistribution is the order in which cores are chosen.
type CoreDistribution int

// Values of CoreDistribution.
const (
	CoresCyclic CoreDistribution = iota // one from each socket in turn, Slurm's default
	CoresBlock                          // one socket after the other
)

// Plan holds the decisions about all pending jobs, in the order in which they were made.
type Plan struct {
	Decisions []Decision
}

// The reasons of decisions, with Slurm's names.
const (
	ReasonNone         = ""
	ReasonResources    = "Resources"
	ReasonPriority     = "Priority"
	ReasonBeginTime    = "BeginTime"
	ReasonNodeNotAvail = "ReqNodeNotAvail"
	// ReasonReservedForOthers: advance reservations keep the nodes for other jobs.
	ReasonReservedForOthers = "ReqNodeNotAvail, May be reserved for other job"
	ReasonBadConstraints    = "BadConstraints" // never possible on these nodes
	ReasonLicenses          = "Licenses"
	ReasonArrayTaskLimit    = "JobArrayTaskLimit"
	ReasonReservation       = "Reservation" // its reservation has not begun
	ReasonDeadline          = "DeadLine"    // it can no longer end in time
)

// Decision is the decision about one job.
type Decision struct {
	ID int64
	// Duration is the job's time limit: Job.Duration, or less if Job.MinDuration allows it.
	Duration int64
	// StartNow: the job starts at Snapshot.Now on Nodes.
	StartNow bool
	// Boot is how many seconds a job that starts now waits for the slowest of its nodes to boot;
	// 0: all of them run.
	Boot int64
	// Start is the planned start; 0: none was found, or none was computed.
	Start int64
	Nodes []Assignment
	// Choice is 0 if the nodes are from Job.Eligible, else the index in Job.Alternatives
	// plus one.
	Choice int
	// Reason is why the job does not start now; empty with StartNow.
	Reason string
}

// Assignment is the resources that a job gets on one node.
type Assignment struct {
	Node     int
	Tasks    int
	CPUCount int
	CPUs     CPUSet // only if the job starts now
	Memory   int64
	GRES     []GRES
}
