package srun

import (
	"testing"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestAttachErrorDependsOnReason checks that the message depends on the reason of the API's
// error, not on its text.
func TestAttachErrorDependsOnReason(t *testing.T) {
	for reason, want := range map[string]string{
		wire.ReasonJobDone: "Slurm job 7 has expired",
		"Conflict":         "Unable to confirm allocation for job 7: any text",
	} {
		err := attachError(7, &kube.Error{Kind: kube.Conflict, Reason: reason, Message: "any text"})
		if err.Error() != want {
			t.Errorf("%s: %q, want %q", reason, err, want)
		}
	}
}
