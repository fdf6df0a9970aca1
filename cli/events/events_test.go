package events

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/status"
)

// fakeCluster returns what a test wrote into it.
type fakeCluster struct {
	records []status.Record
	rows    []status.Job
	pods    []status.Pod
	asked   []int64 // whose pods were requested
}

func (f *fakeCluster) Records(context.Context, *status.RecordQuery) (*status.RecordList, error) {
	return &status.RecordList{Items: f.records}, nil
}

func (f *fakeCluster) Jobs(context.Context, jobs.Filter) (*status.JobList, error) {
	return &status.JobList{Items: f.rows}, nil
}

func (f *fakeCluster) Pods(_ context.Context, id int64, _ bool) (*status.PodList, error) {
	f.asked = append(f.asked, id)
	return &status.PodList{Items: f.pods}, nil
}

func show(t *testing.T, f *fakeCluster, ids ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := &stdio.Process{Streams: stdio.Streams{Out: &out}, Now: func() time.Time { return time.Unix(1000, 0).UTC() }}
	if err := run(t.Context(), p, f, ids); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestLostNodeAndPods: a run that was lost says why the job was requeued, the warnings of
// pods stand between the other lines, and what users wrote reaches no terminal.
func TestLostNodeAndPods(t *testing.T) {
	first := status.Record{
		UID: "a", ID: 7, Name: "x\x1b[2J", User: "alice", UserID: 5, Partition: "debug", State: "NODE_FAIL",
		SubmitLine: "sbatch --comment=\x1b]0;x\a job.sh", Submit: 10, Eligible: 10, Start: 12, End: 20, Signal: 15,
		CPUs: 4, NodeList: "n[1-2]", TimeLimit: 60, SystemComment: "node n2 was lost",
		History: []status.StateChange{
			{State: "PENDING", At: 10e6}, {State: "CONFIGURING", At: 11e6}, {State: "RUNNING", At: 12e6},
		},
		Steps: []status.StepRecord{{Step: "batch", State: "CANCELLED", Start: 12, End: 21, Signal: 15}}, // a late clock
	}
	second := first
	second.Restarts, second.State, second.Submit, second.Eligible, second.Start, second.End = 1, "RUNNING", 20, 140, 141, 0
	second.SystemComment, second.Steps = "", nil
	second.History = []status.StateChange{{State: "RUNNING", At: 141e6}}
	f := &fakeCluster{
		records: []status.Record{second, first},
		rows:    []status.Job{{ID: 7, User: "alice", UID: 5, State: "RUNNING", NodeList: "n[1-2]"}},
		pods: []status.Pod{{Name: "p", Events: []status.PodEvent{
			{Time: 145, Type: "Warning", Reason: "FailedMount", Message: "no\x1b[31m volume\n", Count: 3},
			{Time: 144, Type: "Normal", Reason: "Pulled"},
		}}},
	}
	const want = `job 7 x\x1b[2J, user alice, partition debug: RUNNING
1970-01-01T00:00:10  submitted: sbatch --comment=\x1b]0;x\x07 job.sh
1970-01-01T00:00:11  resources allocated: 4 CPUs on n[1-2], time limit 1:00:00
1970-01-01T00:00:12  started
1970-01-01T00:00:20  step batch ended as CANCELLED, exit code 0:15
1970-01-01T00:00:20  ended as NODE_FAIL, exit code 0:15: node n2 was lost; requeued
1970-01-01T00:02:20  eligible to start
1970-01-01T00:02:21  started: 4 CPUs on n[1-2], time limit 1:00:00
1970-01-01T00:02:25  pod p: FailedMount (3 times): no\x1b[31m volume
`
	if got := show(t, f, "7"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestIDUsedAgain: the row of another user's job with the same id belongs to no story.
func TestIDUsedAgain(t *testing.T) {
	f := &fakeCluster{
		records: []status.Record{{UID: "a", ID: 7, User: "alice", UserID: 5, State: "COMPLETED", Submit: 10, End: 20}},
		rows:    []status.Job{{ID: 7, User: "bob", UID: 6, State: "PENDING", Reason: "Resources", NodeList: "n1"}},
	}
	if got := show(t, f, "7"); strings.Contains(got, "waits") || len(f.asked) > 0 {
		t.Errorf("got\n%s\nand the pods of %v", got, f.asked)
	}
}
