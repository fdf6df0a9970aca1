package scontrol

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// printed returns what the command prints about the error.
func printed(err error) string {
	var b strings.Builder
	slurmerr.Print(&b, "scontrol", err)
	return b.String()
}

// The form of an error follows from its code, whatever its text is.
func TestCodeDecidesHowErrorIsPrinted(t *testing.T) {
	const text, sent = "It did not work.", "slurm_update error: "
	job, step, node := status.EntityJob, status.EntityStep, status.EntityNode
	partition, reservation := status.EntityPartition, status.EntityReservation
	for _, tt := range []struct {
		entity           string
		code             status.ErrorCode
		parameter, value string
		want             string
	}{
		{job, "", "", "", text + " for job 3\n"},
		{job, status.CodeAccessDenied, "", "", text + " for job 3\n"},
		{job, status.CodeUnknownParameter, "foo", "1", text + "\nRequest aborted\n"},
		{job, status.CodeInvalidValue, "UserID", "x", text + "\nRequest aborted\n"},
		{job, status.CodeInvalidValue, "MailType", "x", text + "\n"},
		{job, status.CodeInvalidValue, "TimeLimit", "x", "scontrol: error: " + text + "\n"},
		{job, status.CodeInvalidCount, "NumCPUs", "x", "scontrol: error: " + text + "\n"},
		{job, status.CodeInvalidInstant, "StartTime", "", "No changes specified\n"},
		{job, status.CodeInvalidInstant, "StartTime", "x\x1b",
			"Invalid time specification (pos=0): x\\x1b\nNo changes specified\n"},
		{step, status.CodeInvalidJobID, "", "", sent + text + "\n"},
		{step, status.CodeInvalidValue, "TimeLimit", "x", "scontrol: error: " + text + "\n"},
		{node, status.CodeNoChanges, "", "", sent + text + "\n"},
		{node, status.CodeUnknownParameter, "foo", "1", text + "\nRequest aborted\n"},
		{partition, "", "", "", sent + text + "\n"},
		{partition, status.CodeInvalidCount, "MaxNodes", "x", "scontrol: error: " + text + "\n"},
		{partition, status.CodeInvalidValue, "state", "x", "scontrol: error: " + text + "\n" + noError},
		{partition, status.CodeUnknownParameter, "foo", "1",
			"scontrol: error: " + text + "\n\nscontrol: error: Request aborted\n" + noError},
		{reservation, "", "", "", "Error updating the reservation: " + text + "\n" + sent + text + "\n"},
		{reservation, status.CodeInvalidSettings, "", "", "scontrol: error: " + text + "\n" + noError},
		{reservation, status.CodeInvalidInstant, "starttime", "x", "Invalid time specification (pos=0): x\n" +
			"scontrol: error: " + text + "\n" + sent + "Invalid time specified\n"},
	} {
		s := &specification{entity: tt.entity}
		item := status.OperationStatus{
			Job: "3", Error: text, Code: tt.code, Parameter: tt.parameter, Value: tt.value,
		}
		if got := printed(updateError(s, item)); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.entity, tt.code, got, tt.want)
		}
	}
}

func TestSettingsArePrintedAsTyped(t *testing.T) {
	s := &specification{entity: status.EntityPartition, words: []string{"Nodes=n1", "STATE=Foo"}}
	item := status.OperationStatus{Error: "Invalid input: state=Foo", Parameter: "state", Value: "Foo"}
	if got, want := s.asTyped(item), "Invalid input: STATE=Foo"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	item.Parameter = "other"
	if got := s.asTyped(item); got != item.Error {
		t.Errorf("%q, want %q", got, item.Error)
	}
}
