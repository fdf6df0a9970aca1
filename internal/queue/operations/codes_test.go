package operations_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// Programs decide by the code of an error, and by the setting that it is about.
func TestOutcomesHaveCodes(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "ben", nil)
	set := func(k, v string) map[string]string { return map[string]string{k: v} }
	update := func(entity string, settings map[string]string) status.Operation {
		op := status.Operation{Verb: status.OpUpdate, Entity: entity, Targets: []string{"x"}, Set: settings}
		if entity == "" {
			op.Targets, op.Jobs = nil, []string{"1"}
		}
		return op
	}
	create := status.Operation{Verb: status.OpCreate, Entity: "reservation", Set: set("Nodes", "ALL")}
	for _, tt := range []struct {
		op        status.Operation
		code      status.ErrorCode
		parameter string
	}{
		{update("", set("TimeLimit", "x")), status.CodeInvalidValue, "TimeLimit"},
		{update("", set("NumNodes", "x")), status.CodeInvalidCount, "NumNodes"},
		{update("", set("NumCPUs", "x")), status.CodeInvalidCount, "NumCPUs"},
		{update("", set("StartTime", "x")), status.CodeInvalidInstant, "StartTime"},
		{update("", set("EndTime", "x")), status.CodeInvalidInstant, "EndTime"},
		{update("", set("UserID", "x")), status.CodeInvalidValue, "UserID"},
		{update("", set("Foo", "x")), status.CodeUnknownParameter, "Foo"},
		{update("", set("Partition", "x")), "", ""},
		{update("step", set("TimeLimit", "x")), status.CodeInvalidValue, "TimeLimit"},
		{update("node", set("Foo", "x")), status.CodeUnknownParameter, "foo"},
		{update("partition", set("State", "x")), status.CodeInvalidValue, "state"},
		{update("partition", set("MaxNodes", "x")), status.CodeInvalidCount, "MaxNodes"},
		{update("reservation", set("StartTime", "x")), status.CodeInvalidInstant, "starttime"},
		{update("reservation", set("NodeCnt", "x")), status.CodeInvalidCount, "nodecnt"},
		{update("reservation", set("Flags", "x")), status.CodeInvalidValue, "flags"},
		{create, status.CodeInvalidSettings, ""},
		{status.Operation{Verb: status.OpHold, Jobs: []string{"9"}}, status.CodeInvalidJobID, ""},
	} {
		got := c.operation(t, "ben", tt.op)
		value := ""
		if tt.parameter != "" {
			value = "x"
		}
		if got.Error == "" || got.Code != tt.code || got.Parameter != tt.parameter || got.Value != value {
			t.Errorf("%+v: %+v, want %s about %s", tt.op, got, tt.code, tt.parameter)
		}
	}
}
