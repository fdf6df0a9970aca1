// Package refusal has the messages with which Slurm refuses requests
// (slurm_strerror(3), and those that only scontrol prints), each written once.
// Commands print them as they are; their wording is that of Slurm 22.05.8. Those
// for values beyond a bound are defined by package bounds, those for missing
// rights by package authz.
package refusal

import (
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/translate/bounds"
)

// Text is an error whose message is Slurm's, or a message of Berth that
// commands print in its place.
type Text string

// Error returns the message.
func (t Text) Error() string { return string(t) }

// Refusals that are about the caller or the state of a job.
const (
	AccessDenied       Text = authz.Denied
	AlreadyCompleting  Text = "Job/step already completing or completed"
	ComponentOperation Text = "Operation not permitted on individual component of heterogeneous job"
	Disabled           Text = "Requested operation is presently disabled"
	InvalidJobID       Text = "Invalid job id specified"
	InvalidUser        Text = authz.InvalidUser
	JobFinished        Text = "Job has already finished"
	JobHeld            Text = "Job is in held state, pending scheduler release"
	JobPending         Text = "Job is pending execution"
	NotAlterableNow    Text = "Job can not be altered now, try again later"
	NotPending         Text = "Job is no longer pending execution"
	NotRunning         Text = "Job is not running"
	NotSupported       Text = "Requested operation not supported on this system"
	NotSuspended       Text = "Job is not suspended"
	NoChanges          Text = "No changes specified"
	TryAgain           Text = "Resource temporarily unavailable"
)

// Refusals of what a job requests.
const (
	CircularDependency Text = "Circular job dependency"
	DependencyProblem  Text = bounds.BadDependency
	GroupNotPermitted  Text = "User's group not permitted to use this partition"
	InvalidAccount     Text = "Invalid account or account/partition combination specified"
	InvalidArray       Text = bounds.BadArray
	InvalidFeature     Text = "Invalid feature specification"
	InvalidGRES        Text = bounds.BadGRES
	InvalidGroup       Text = bounds.BadGroup
	InvalidLicense     Text = bounds.BadLicense
	InvalidNice        Text = bounds.BadNice
	InvalidNode        Text = bounds.BadNodeName
	InvalidNodeCount   Text = bounds.BadNodeCount
	InvalidPartition   Text = bounds.BadPartition
	InvalidQOS         Text = "Invalid qos specification"
	InvalidTRES        Text = "Invalid Trackable RESource (TRES) specification"
	InvalidTaskCount   Text = "Task count specification invalid"
	InvalidTime        Text = bounds.BadTime
	InvalidTimeLimit   Text = bounds.BadTimeLimit
	InvalidTimeMin     Text = "Invalid time-min specification (exceeds job's time or other limits)"
	InvalidWCKey       Text = "Invalid wckey specification"
	MemoryUnavailable  Text = bounds.BadMemory
	NoPartition        Text = "No partition specified or system default partition"
	NoScript           Text = "Job script not specified"
	// NodeConfigUnavailable is also the refusal of a reservation.
	NodeConfigUnavailable Text = "Requested node configuration is not available"
	// PartitionConfigUnavailable is what an update of a job says in place of
	// InvalidNodeCount and TooManyProcessors.
	PartitionConfigUnavailable Text = "Requested partition configuration not available now"
	PartitionUnavailable       Text = "Required partition not available (inactive or drain)"
	PolicyViolation            Text = "Job violates accounting/QOS policy " +
		"(job submit limit, user's size and/or time limits)"
	// PriorityNotPersistent comes with a change that is made nevertheless, as far
	// as it goes.
	PriorityNotPersistent Text = "Changes to job priority are not persistent, change nice instead"
	ReservationAccess     Text = "Access denied to requested reservation" // it is for others
	TooLong               Text = bounds.TooLong
	TooManyProcessors     Text = bounds.BadCPUs
)

// Refusals of changes to nodes, partitions and reservations.
const (
	FeaturesNotSubset     Text = "Active features not subset of available features"
	InvalidBillingWeights Text = "Invalid TRESBillingWeights specification"
	InvalidCoreCount      Text = "Core count for reservation node list is not consistent!"
	InvalidCPUCount       Text = "CPU count specification invalid"
	InvalidNodeState      Text = "Invalid node state specified"
	InvalidReservation    Text = bounds.BadReservation
	NodeReasonMissing     Text = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
	// NoRebootProgram is about a cluster that has no program for it.
	NoRebootProgram   Text = "nothing reboots nodes: set rebootProgram of the Cluster"
	NodesBusy         Text = "Requested nodes are busy"
	PartNodesNeedsAll Text = "PART_NODES flag requires specifying a Partition and ALL nodes." +
		"  No reservation created."
	// PartNodesNeedsAllUpdate is the refusal of an update for the same reason.
	PartNodesNeedsAllUpdate Text = "PART_NODES flag requires specifying a Partition and ALL nodes." +
		"  No reservation update."
	PermissionDenied        Text = "Permission denied" // the text of EACCES
	PartitionInUse          Text = "Partition is in use"
	ReservationCoresFixed   Text = "Core-based reservation can not be updated"
	ReservationExists       Text = "Duplicate reservation name"
	ReservationInUse        Text = "Requested reservation is in use"
	ReservationOverlap      Text = "Requested reservation overlaps with another reservation"
	ReservationUsersGroups  Text = "Reservations can't have users and groups specified, only one or the other"
	ReservationUsersMissing Text = "Reservation request lacks users, groups or accounts"
)
