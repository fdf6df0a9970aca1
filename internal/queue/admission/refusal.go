package admission

import (
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/queue/refusal"
)

// CauseRefusal marks the cause in the status details of a refused request whose
// message is the text of the Refusal alone.
const CauseRefusal metav1.CauseType = "BerthRefusal"

// Refusal is a decision against a request.
type Refusal struct {
	// Text is shown to the sender of the request, as it follows "Batch job
	// submission failed: ".
	Text refusal.Text
	Code int32 // HTTP status; 0: 403
	// RetryAfter is the number of seconds after which a retry may succeed; 0: none
	// would.
	RetryAfter int32
}

// Error returns the text.
func (r *Refusal) Error() string { return string(r.Text) }

// Unwrap returns the text, for errors.Is with a constant of package refusal.
func (r *Refusal) Unwrap() error { return r.Text }

func refuse(text refusal.Text) error { return &Refusal{Text: text} }

func refusef(format string, args ...any) error {
	return refuse(refusal.Text(fmt.Sprintf(format, args...)))
}

// refuseForNow returns a Refusal that invites a retry after a number of seconds.
func refuseForNow(seconds int32) error {
	return &Refusal{Text: refusal.TryAgain, Code: http.StatusTooManyRequests, RetryAfter: seconds}
}

// errorResponse returns the response to a request that err refuses. An error that
// is no Refusal is a failure of this process, after which the sender may retry.
func errorResponse(err error) *admissionv1.AdmissionResponse {
	s := &metav1.Status{
		Status: metav1.StatusFailure, Message: err.Error(),
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	}
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
		Causes:            []metav1.StatusCause{{Type: CauseRefusal, Message: string(r.Text)}},
	}
	return &admissionv1.AdmissionResponse{Result: s}
}
