package status

// ErrorCode says why an operation failed, for programs: the text of the error is for
// people. Errors that no client handles in a special way have none, and neither do those
// of servers that are older than the field.
type ErrorCode string

// Codes of errors about the objects of an operation.
const (
	CodeAccessDenied       ErrorCode = "AccessDenied"
	CodeAlreadyCompleting  ErrorCode = "AlreadyCompleting"
	CodeComponentOperation ErrorCode = "ComponentOperation" // not on one component of a heterogeneous job
	CodeInvalidJobID       ErrorCode = "InvalidJobID"
	CodeNodesBusy          ErrorCode = "NodesBusy"
	CodeNodesUnavailable   ErrorCode = "NodesUnavailable" // no nodes of the configuration exist
	// CodeNotInTime: the job was not processed before the request's timeout. The caller
	// may retry.
	CodeNotInTime ErrorCode = "NotInTime"
)

// Codes of errors about the settings of an operation. Where one setting is at fault,
// OperationStatus.Parameter and OperationStatus.Value contain it.
const (
	CodeInvalidCount     ErrorCode = "InvalidCount"   // the value is not a number, or out of range
	CodeInvalidInstant   ErrorCode = "InvalidInstant" // the value is not a point in time
	CodeInvalidSettings  ErrorCode = "InvalidSettings"
	CodeInvalidValue     ErrorCode = "InvalidValue"
	CodeNoChanges        ErrorCode = "NoChanges"
	CodeUnknownParameter ErrorCode = "UnknownParameter"
)

// AboutSettings reports whether the settings are wrong in themselves, whatever the
// objects are that they were for. Slurm's scontrol finds such errors without slurmctld.
func (c ErrorCode) AboutSettings() bool {
	switch c {
	case CodeInvalidCount, CodeInvalidInstant, CodeInvalidSettings, CodeInvalidValue, CodeUnknownParameter:
		return true
	}
	return false
}
