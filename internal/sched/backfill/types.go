// Package backfill plans the queue: a snapshot of nodes and jobs goes in, and
// a plan comes out that says which job starts now, where and on which CPUs,
// and when each of the others will start. It is pure: no clock, no I/O, no
// randomness; the same snapshot gives the same plan.
//
// Vocabulary: a CPU is what Slurm calls one, a hardware thread; memory is MiB;
// instants are Unix seconds; durations are seconds.
package backfill

import "math"

// Forever is the end of what has no end.
const Forever int64 = math.MaxInt64

// Snapshot is everything a plan depends on. Plan does not change it.
type Snapshot struct {
	Now     int64
	Nodes   []Node
	Running []Running
	Pending []Job // in any order
	// AdvanceReservations take nodes for some jobs, or from all, for a time:
	// Slurm's reservations, maintenance, outages.
	AdvanceReservations []AdvanceReservation
	Licenses            []License
	// Limits bound what jobs may start together (Job.Limits).
	Limits []Limit
	// Overtime is how many seconds a running job that should have ended is expected
	// to continue from Now on; at least 1.
	Overtime int64
	Policy   Policy
}

// AdvanceReservation takes nodes for a time from every job that does not name
// it.
type AdvanceReservation struct {
	// Name that Job.Reservation refers to; empty: nobody may (an outage).
	Name       string
	Start, End int64 // [Start, End); Forever: no end
	Nodes      NodeSet
	// Cores are CPUs of other nodes, by node number, that the reservation takes.
	// The rest of the node is free for all jobs.
	Cores map[int]CPUSet
	// Flex lets the reservation's own jobs use other nodes and times as well.
	Flex bool
	// AnyNodes lets the reservation's own jobs use any nodes while it is active.
	AnyNodes bool
	// Licenses are taken from jobs that do not name the reservation, less what its
	// own jobs hold.
	Licenses []License
}

// License is a countable resource of the cluster. Running jobs hold some of
// Total.
type License struct {
	Name  string
	Total int64
}

// Limit bounds what the jobs that name it may start. A job that would exceed it
// does not start and gets Reason and no reservation.
type Limit struct {
	Reason   string // QOSMaxJobsPerUser, AssocGrpCpuLimit, ...
	Quantity Quantity
	GRES     string // name, or name:type, where Quantity is QuantityGRES
	Left     int64
}

// Quantity is what a Limit counts.
type Quantity int

// Quantities of a job that starts.
const (
	QuantityJobs Quantity = iota
	QuantityCPUs
	QuantityNodes
	QuantityMemory // MiB
	QuantityGRES
	QuantityBilling // as Job.Bill returns
)

// Policy is how the queue is planned. FCFS, EASY, SJBF and Conservative return
// common ones.
type Policy struct {
	// Reservations is how many jobs of each partition that cannot start now get a
	// reservation that no later job may delay. 1 is EASY backfill; 0 is
	// conservative backfill, in which every job gets one.
	Reservations int
	// PlanAll plans a start for the jobs without a reservation too, behind the
	// others. Such a start is an estimate.
	PlanAll bool
	// NoBackfill starts no job behind one that cannot start (FCFS).
	NoBackfill bool
	// ShortestFirst considers the jobs of a partition whose reservations are all
	// given in the order of their time limits (shortest job backfilled first).
	// No job that has a reservation is delayed by that.
	ShortestFirst bool

	// For tests: slots of fixed width on small machines too; searches that do not
	// share bounds.
	forceCoarse, noDominance bool
	// forceExact, for tests, decides everything on an exact profile.
	forceExact bool
}

// DefaultPolicy returns the policy of a scheduler that is not configured
// otherwise. EASY's one reservation for each partition keeps any job from
// starving and leaves most room for backfill; every job gets a planned start all the same.
func DefaultPolicy() Policy { return Policy{Reservations: 1, PlanAll: true} }

// FCFS returns the policy first come, first served: no job starts before the
// ones ahead of it.
func FCFS() Policy { return Policy{Reservations: 1, NoBackfill: true} }

// EASY returns the policy that lets jobs start early as long as they do not
// delay the first waiting job of their partition.
func EASY() Policy { return Policy{Reservations: 1} }

// SJBF returns EASY with the shortest job backfilled first.
func SJBF() Policy { return Policy{Reservations: 1, ShortestFirst: true} }

// Conservative returns the policy that gives every job a reservation.
func Conservative() Policy { return Policy{} }

// Node is one node of the cluster. Its number is its index in Snapshot.Nodes.
type Node struct {
	Name string
	// Position of the node in the machine, which decides which nodes are neighbours
	// and the order of a job's tasks. Nodes with low numbers are used first. If all
	// are 0, the numbers are the positions.
	Position int
	// CPUs the node has, numbered from 0; consecutive runs of ThreadsPerCore
	// ids are one core. 0 ThreadsPerCore means 1.
	CPUs           int
	ThreadsPerCore int
	// Sockets the cores are spread over evenly, in the order of their ids;
	// 0 or a number that does not divide the cores: 1.
	Sockets int
	Memory  int64
	GRES    []GRES
	// TopologyPath is the node's place in the network, from the widest switch or block
	// to the one it hangs on. Nodes without one hang together.
	TopologyPath []string
	// Unavailable: no job may start there (down, drained, cordoned, unknown).
	Unavailable bool
	// Used is what others than our jobs take for good (system pods).
	UsedCPUs   int
	UsedMemory int64
	UsedGRES   []GRES
}

// GRES is a count of one generic resource. A node lists each name and type
// once; a request with an empty Type takes any type of that name.
type GRES struct {
	Name  string
	Type  string
	Count int64
}

// Running is a job that holds resources, completing ones included.
type Running struct {
	ID int64
	// End is when it will have ended at the latest, or should have (see
	// Snapshot.Overtime); Forever: unknown.
	End        int64
	Allocation []NodeAllocation
	// Exclusive: nothing else may run on its nodes.
	Exclusive bool
	// User and UserExclusive as in Job; Share as in Job.
	User          int64
	UserExclusive bool
	Share         int
	// Licenses held, by name.
	Licenses []License
	// Reservation it runs in.
	Reservation string
}

// NodeAllocation is what one job holds on one node.
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
	Duration int64 // time limit in seconds; Forever: none
	// Partition is any number that the jobs of one partition share: the first
	// of them that waits for nodes has reason Resources, the others Priority.
	Partition int
	// Blocked says why the job cannot be considered at all (Slurm's reason:
	// Dependency, JobHeldUser, PartitionDown, ...); empty: it can.
	Blocked string

	// Group is shared by jobs that start at one instant or not at all, the
	// components of a heterogeneous job; 0: none. The first of them in the
	// queue's order decides when all of them are considered.
	Group int64
	// MinDuration is the least time limit the job takes if it starts earlier
	// for it (--time-min); 0: Duration. Deadline is when it must have ended.
	MinDuration int64
	Deadline    int64
	// NoReserve: the job gets no reservation that others must respect.
	NoReserve bool
	// Reservation is the Block whose nodes it uses. The job starts while that
	// lasts, and is taken to hold nothing beyond its end. A Running job may.
	Reservation string
	// Inside, where not nil, says for each choice of nodes which Block it is
	// about, instead of Reservation: blocks that attract jobs.
	ChoiceReservations []string
	Licenses           []License
	Limits             []int // places in Snapshot.Limits
	// Bill is what the job draws on limits of QuantityBilling when it gets these
	// nodes, and at least when nodes is nil. A nil Bill counts the CPUs.
	Bill func(nodes []Assignment) int64

	// Eligible tells for each node number whether the job may run there
	// (partition, features, exclusions). nil: everywhere.
	Eligible *NodeSet
	// Alternatives are tried in their order where Eligible serves later or not
	// at all: the further partitions of a job that names several.
	Alternatives []*NodeSet
	Required     []int // nodes that must be among those it gets

	MinNodes int // at least 1
	// MaxNodes bounds the nodes; 0: as few as do. A job with a range gets as
	// many of it as can start (sbatch(1), --nodes).
	MaxNodes int
	// Tasks in all; 0: one for each node. Each takes CPUsPerTask CPUs.
	Tasks        int
	TasksPerNode int // most tasks on one node; 0: no bound
	// ExactPerNode: every node gets exactly TasksPerNode tasks.
	ExactPerNode bool
	CPUsPerTask  int // 0: 1
	MinCPUs      int // least CPUs on each node
	// Overcommit: the CPUs of one task on each node, however many run there.
	// What bounds the tasks of a core or socket does not count (sbatch(1)).
	Overcommit bool

	MemPerNode  int64
	MemPerCPU   int64
	AllMemory   bool   // --mem=0
	GRES        []GRES // on each node
	GRESPerTask []GRES
	// GRESTotal is what all nodes together get of entries of GRES, of which each
	// node then has at least one.
	GRESTotal []GRES
	Exclusive bool // whole nodes, with all of their GRES

	// User owns the job; UserExclusive: only jobs of the same user beside it.
	User          int64
	UserExclusive bool
	// Share is the number of jobs that may have the same CPU, all of which
	// must allow it (OverSubscribe); 0: 1.
	Share int

	// ConstraintCounts are sets of nodes of which so many must be among those the job
	// gets (--constraint with counts). Each node serves one part.
	ConstraintCounts []ConstraintCount
	// Wide: as many nodes as can be had, the tasks evenly on them; Narrow: of a
	// range of nodes as few as do.
	SpreadJob, UseMinNodes bool
	// Contiguous: the numbers of the nodes follow each other. Switches bounds
	// the leaf switches the nodes hang on, 0: no bound; after SwitchesUntil
	// (0: never) the job takes more.
	Contiguous    bool
	Switches      int
	SwitchesUntil int64
	// Segment: the nodes are so many segments of that many nodes, each below one
	// leaf switch; 0: no matter. Segments says which segments go together.
	Segment       int
	SegmentLayout SegmentLayout

	// Least sockets, and cores and threads that each must have, of a node;
	// most tasks on a socket or core. 0: no matter.
	SocketsPerNode, CoresPerSocket, ThreadsPerCore int
	TasksPerSocket, TasksPerCore                   int
	// CoreDistribution is how cores are taken from the sockets of a node.
	CoreDistribution CoreDistribution
	// OneThread: tasks use one thread of each core (--hint=nomultithread).
	NoMultithread bool

	// Copies is how many jobs exactly like this one wait, the tasks of an
	// array; 0: one. The plan has a decision with this ID for each of them that
	// starts now, and then one or more for those that do not.
	Copies int
}

// ConstraintCount is a number of nodes out of a set.
type ConstraintCount struct {
	Nodes *NodeSet
	Count int
}

// CoreDistribution says in which order cores are taken.
type CoreDistribution int

// Spreads.
const (
	CoresCyclic CoreDistribution = iota // one from each socket in turn, Slurm's default
	CoresBlock                          // one socket after the other
)

// Plan is the outcome for every pending job, in the order considered.
type Plan struct {
	Decisions []Decision
}

// Reasons a decision may carry, as Slurm names them.
const (
	ReasonNone         = ""
	ReasonResources    = "Resources"
	ReasonPriority     = "Priority"
	ReasonBeginTime    = "BeginTime"
	ReasonNodeNotAvail = "ReqNodeNotAvail"
	// ReasonKept: reservations of others keep the nodes.
	ReasonReservedForOthers = "ReqNodeNotAvail, May be reserved for other job"
	ReasonBadConstraints    = "BadConstraints" // never possible on these nodes
	ReasonLicenses          = "Licenses"
	ReasonArrayTaskLimit    = "JobArrayTaskLimit"
	ReasonReservation       = "Reservation" // its reservation has not begun
	ReasonDeadline          = "DeadLine"    // it can no longer end in time
)

// Decision is the outcome for one job.
type Decision struct {
	ID int64
	// Duration the job gets: Job.Duration, or less by Job.MinDuration.
	Duration int64
	// StartNow: start it at Snapshot.Now on Nodes.
	StartNow bool
	// Start is the planned start; 0: none could be found or none was sought.
	Start int64
	Nodes []Assignment
	// Choice is 0 when the nodes are of Job.Eligible, else the place in
	// Job.Alternatives plus one.
	Choice int
	// Reason why it does not start now; empty with StartNow.
	Reason string
}

// Assignment is what a job gets on one node.
type Assignment struct {
	Node     int
	Tasks    int
	CPUCount int    // CPUs
	CPUs     CPUSet // which; only where the job starts now
	Memory   int64
	GRES     []GRES
}
