package admission

import (
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slurm's texts, as they follow "Batch job submission failed: ".
const (
	TextNoPartition = "No partition specified or system default partition"
	TextPartition   = "Invalid partition name specified"
	TextInactive    = "Required partition not available (inactive or drain)"
	TextDenied      = "Access/permission denied"
	TextGroup       = "User's group not permitted to use this partition"
	TextAccount     = "Invalid account or account/partition combination specified"
	TextQOS         = "Invalid qos specification"
	TextWCKey       = "Invalid wckey specification"
	TextTimeLimit   = "Requested time limit is invalid (missing or exceeds some limit)"
	TextTimeMin     = "Invalid time-min specification (exceeds job's time or other limits)"
	TextLicense     = "Invalid license specification"
	TextReservation = "Requested reservation is invalid"
	// TextReservationAccess: the reservation is somebody else's.
	TextReservationAccess = "Access denied to requested reservation"
	TextNodeCount         = "Node count specification invalid"
	TextMemory            = "Memory required by task is not available"
	TextNice              = "Invalid --nice value"
	TextArray             = "Invalid job array specification"
	TextTooLong           = "Pathname of a file, directory or other parameter too long"
	TextPolicy            = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
	TextNoScript          = "Job script not specified"
	TextUser              = "Invalid user id"
	TextGroupID           = "Invalid group id"
	TextAgain             = "Resource temporarily unavailable"
	TextNodeConfig        = "Requested node configuration is not available"
	TextNotPending        = "Job is no longer pending execution"
	TextPending           = "Job is pending execution"
	TextDisabled          = "Requested operation is presently disabled"
	TextNotSupported      = "Requested operation not supported on this system"
)

// CauseRefusal marks the cause in a refused request's status details whose
// message is the plain text of a Refusal.
const CauseRefusal metav1.CauseType = "BerthRefusal"

// Refusal is a decision against a request, with the text for its sender.
type Refusal struct {
	Text string
	Code int32 // HTTP; 0: 403
	// RetryAfter, in seconds, says when to try again; 0: it would not help.
	RetryAfter int32
}

func (r *Refusal) Error() string { return r.Text }

func refuse(text string) error { return &Refusal{Text: text} }

func refusef(format string, args ...any) error { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// again refuses for now.
func again(seconds int32) error {
	return &Refusal{Text: TextAgain, Code: http.StatusTooManyRequests, RetryAfter: seconds}
}

// denied is the answer to a request that err is against. An error that is no
// Refusal is a failure of ours: the sender may try again.
func denied(err error) *admissionv1.AdmissionResponse {
	s := &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	var r *Refusal
	if !errors.As(err, &r) {
		s.Code, s.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		return &admissionv1.AdmissionResponse{Result: s}
	}
	if r.Code != 0 {
		s.Code = r.Code
	}
	if r.Code == http.StatusTooManyRequests {
		s.Reason = metav1.StatusReasonTooManyRequests
	}
	s.Details = &metav1.StatusDetails{
		RetryAfterSeconds: r.RetryAfter,
		Causes:            []metav1.StatusCause{{Type: CauseRefusal, Message: r.Text}},
	}
	return &admissionv1.AdmissionResponse{Result: s}
}
