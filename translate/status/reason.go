package status

import "strings"

// Reason is why a job waits or ended as it did, by Slurm's name (squeue(1), JOB
// REASON CODES). Some reasons have text after the name, such as
// "ReqNodeNotAvail, UnavailableNodes:n1"; the predicates read only the name.
// Rows and objects hold it as a string; convert to use the predicates.
type Reason string

// Reasons that decide what is done with a job. Their values are part of the API.
const (
	ReasonNone                     = "None"
	ReasonResources                = "Resources"
	ReasonPriority                 = "Priority"
	ReasonBeginTime                = "BeginTime"
	ReasonDeadline                 = "DeadLine"
	ReasonDependency               = "Dependency"
	ReasonDependencyNeverSatisfied = "DependencyNeverSatisfied"
	ReasonHeldUser                 = "JobHeldUser"
	ReasonHeldAdmin                = "JobHeldAdmin"
	ReasonNodeNotAvailable         = "ReqNodeNotAvail"
	ReasonNodeDown                 = "NodeDown"
	ReasonInvalidAccount           = "InvalidAccount"
	ReasonPartitionDown            = "PartitionDown"
	ReasonLicenses                 = "Licenses"
	ReasonReservation              = "Reservation"
	ReasonArrayTaskLimit           = "JobArrayTaskLimit"
	ReasonBadConstraints           = "BadConstraints"

	// Reasons of jobs that have ended.
	ReasonTimeLimit       = "TimeLimit"
	ReasonNonZeroExitCode = "NonZeroExitCode"
	ReasonOutOfMemory     = "OutOfMemory"
	ReasonLaunchFailure   = "JobLaunchFailure"
	ReasonPreempted       = "Preempted"
)

// Name returns the reason without the text that may follow it.
func (r Reason) Name() Reason {
	name, _, _ := strings.Cut(string(r), ",")
	return Reason(name)
}

// IsDependency reports whether the job waits for other jobs, even if its dependency can no
// longer be met.
func (r Reason) IsDependency() bool {
	return r == ReasonDependency || r == ReasonDependencyNeverSatisfied
}

// IsNeverSatisfied reports whether the job's dependency can no longer be met.
func (r Reason) IsNeverSatisfied() bool { return r == ReasonDependencyNeverSatisfied }

// IsHeld reports whether the job is held by its user or an administrator.
func (r Reason) IsHeld() bool { return r == ReasonHeldUser || r == ReasonHeldAdmin }

// IsNodeNotAvailable reports whether the job needs nodes that are down, drained
// or reserved.
func (r Reason) IsNodeNotAvailable() bool { return r.Name() == ReasonNodeNotAvailable }

// IsQOSLimit reports whether a limit of a QOS keeps the job from starting.
func (r Reason) IsQOSLimit() bool { return strings.HasPrefix(string(r), "QOS") }

// IsAssociationLimit reports whether a limit of an association (user, account or
// partition in it) keeps the job from starting.
func (r Reason) IsAssociationLimit() bool { return strings.HasPrefix(string(r), "Assoc") }
