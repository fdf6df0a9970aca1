package jobevents

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// TestEventsOfChanges has the changes of a job's status and the events about them, with all
// events and with warnings alone.
func TestEventsOfChanges(t *testing.T) {
	on := func(s v1alpha1.BatchJobStatus) v1alpha1.BatchJobStatus {
		s.Attempt, s.Allocation = 1, &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1"}, {Name: "n2"}}}
		return s
	}
	in := func(state string) v1alpha1.BatchJobStatus { return on(v1alpha1.BatchJobStatus{State: state}) }
	past := func(state, message string) v1alpha1.BatchJobStatus {
		return v1alpha1.BatchJobStatus{State: "PENDING", Past: []v1alpha1.PastAttempt{
			{Attempt: 1, State: state, NodeList: "n[1-2]", Message: message}}}
	}
	ended := func(final, reason, message string, code int32) v1alpha1.BatchJobStatus {
		return on(v1alpha1.BatchJobStatus{State: "COMPLETING", Final: final, Reason: reason, Message: message,
			ExitCode: &v1alpha1.ExitCode{Status: code}})
	}
	preempted := in("RUNNING")
	preempted.Preempt = &v1alpha1.Preemption{By: 9, Mode: "REQUEUE"}
	for name, c := range map[string]struct {
		before, after v1alpha1.BatchJobStatus
		want          string
	}{
		"placed":         {v1alpha1.BatchJobStatus{}, in("CONFIGURING"), "Normal Allocated resources are allocated, on n[1-2]"},
		"started":        {in("CONFIGURING"), in("RUNNING"), "Normal Started started, on n[1-2]"},
		"at once":        {v1alpha1.BatchJobStatus{}, in("RUNNING"), "Normal Started started, on n[1-2]"},
		"suspended":      {in("RUNNING"), in("SUSPENDED"), "Normal Suspended suspended"},
		"resumed":        {in("SUSPENDED"), in("RUNNING"), "Normal Resumed resumed"},
		"no news":        {in("RUNNING"), in("RUNNING"), ""},
		"completed":      {in("RUNNING"), ended("COMPLETED", "", "", 0), "Normal Completed ended as COMPLETED, exit code 0:0, on n[1-2]"},
		"known end":      {ended("COMPLETED", "", "", 0), in("COMPLETED"), ""},
		"failed":         {in("RUNNING"), ended("FAILED", status.ReasonNonZeroExitCode, "", 3), "Normal Failed ended as FAILED, exit code 3:0, on n[1-2]"},
		"no output":      {in("RUNNING"), ended("FAILED", status.ReasonLaunchFailure, "no space", 1), "Warning Failed ended as FAILED, exit code 1:0, on n[1-2]: no space"},
		"time limit":     {in("RUNNING"), ended("TIMEOUT", "", "", 0), "Warning Timeout ended as TIMEOUT, exit code 0:0, on n[1-2]"},
		"memory":         {in("RUNNING"), ended("OUT_OF_MEMORY", "", "", 0), "Warning OutOfMemory ended as OUT_OF_MEMORY, exit code 0:0, on n[1-2]"},
		"cancelled":      {v1alpha1.BatchJobStatus{}, v1alpha1.BatchJobStatus{State: "CANCELLED"}, "Normal Cancelled ended as CANCELLED"},
		"will run again": {in("RUNNING"), ended("PENDING", "", "node n2 was lost", 0), ""},
		"lost node": {ended("PENDING", "", "", 0), past("NODE_FAIL", "node n2 was lost"),
			"Warning Requeued attempt 1 ended as NODE_FAIL, on n[1-2]: node n2 was lost"},
		"requeued":  {ended("PENDING", "", "", 0), past(status.StateRequeued, ""), "Normal Requeued attempt 1 was requeued, on n[1-2]"},
		"again":     {past("NODE_FAIL", ""), past("NODE_FAIL", ""), ""},
		"preempted": {in("RUNNING"), preempted, "Warning Preempting job 9 needs its resources (REQUEUE)"},
	} {
		for level, shown := range map[string]bool{
			v1alpha1.JobEventsAll: true, "": strings.HasPrefix(c.want, "Warning"), v1alpha1.JobEventsNone: false,
		} {
			fake := record.NewFakeRecorder(3)
			r := &Recorder{func() string { return level }, fake}
			object := metav1.ObjectMeta{Name: "job-1", ResourceVersion: "1", UID: "u"}
			r.Changed(&v1alpha1.BatchJob{ObjectMeta: object, Status: c.before}, &v1alpha1.BatchJob{ObjectMeta: object, Status: c.after})
			close(fake.Events)
			var got []string
			for e := range fake.Events {
				got = append(got, e)
			}
			want := c.want
			if !shown {
				want = ""
			}
			if text := strings.Join(got, "\n"); text != want {
				t.Errorf("%s, %q: %q, want %q", name, level, text, want)
			}
		}
	}
}
