package format_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// Slurm 22.05.8 has the comment of a run once it has ended.
func TestCommentOfARun(t *testing.T) {
	for state, want := range map[string]string{
		"PENDING": "", "RUNNING": "", "COMPLETED": "c", "CANCELLED": "c", "REQUEUED": "c",
	} {
		row := format.AcctRow{Job: &status.Record{State: state, Comment: "c"}}
		if got := format.AcctValue("Comment", &row, &format.AcctSettings{}); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
