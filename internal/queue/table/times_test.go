package table_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/job"
)

// A held or dependent job becomes eligible at its begin time, which counts as its start
// until it has come; without a begin time neither is known. As in Slurm 22.05.8.
func TestBeginTimeOfWaitingJobs(t *testing.T) {
	later, before := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	cluster, tab := newTable(plans{})
	for i, tt := range []struct {
		hold             string
		begin            int64
		depends          bool
		eligible, starts int64
	}{
		{"user", later, false, later, later},
		{"user", before, false, before, 0},
		{"user", 0, false, 0, 0},
		{"", later, false, later, later},
		{"", later, true, later, later},
		{"", 0, true, 0, 0},
	} {
		id := int64(i) + 1
		fake.Feed(cluster, batchJob(id, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Hold, b.Spec.Job.Time.Begin = tt.hold, tt.begin
			if tt.depends {
				b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 99}}
			}
		}))
		j := tab.Merged(tab.Select(t.Context(), table.Query{IDs: []int64{id}})[0])
		if j.Eligible != tt.eligible || j.Start != tt.starts || j.Accrue != 0 || j.LastSched != 0 {
			t.Errorf("%+v: eligible at %d, starts at %d, accrues from %d", tt, j.Eligible, j.Start, j.Accrue)
		}
	}
}

// A job whose dependencies were satisfied is eligible from when it got its nodes on, at
// the latest. Until then, and if it was cancelled before, that is not known.
func TestEligibleTimeOfDependentJobs(t *testing.T) {
	cluster, tab := newTable(plans{})
	placed, started := metav1.NewMicroTime(time.Unix(2000, 0)), metav1.NewMicroTime(time.Unix(2003, 0))
	for i, tt := range []struct {
		change func(*v1alpha1.BatchJobStatus)
		want   int64
	}{
		{func(*v1alpha1.BatchJobStatus) {}, 0},
		{func(s *v1alpha1.BatchJobStatus) { s.State, s.EndTime = v1alpha1.StateCancelled, &started }, 0},
		{func(s *v1alpha1.BatchJobStatus) {
			s.State, s.StartTime = v1alpha1.StateRunning, &started
			s.History = []v1alpha1.StateChange{{State: v1alpha1.StatePending, At: metav1.NewMicroTime(time.Unix(1000, 0))},
				{State: v1alpha1.StateConfiguring, At: placed}, {State: v1alpha1.StateRunning, At: started}}
		}, 2000},
	} {
		id := int64(i) + 1
		fake.Feed(cluster, batchJob(id, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 99}}
			tt.change(&b.Status)
		}))
		j := tab.Merged(tab.Select(t.Context(), table.Query{IDs: []int64{id}, AllStates: true})[0])
		if j.Eligible != tt.want {
			t.Errorf("case %d: eligible at %d, want %d", i, j.Eligible, tt.want)
		}
	}
}

// The time that a running job was suspended extends it, as LimitEnds has it.
func TestSuspendedTimeExtendsARun(t *testing.T) {
	cluster, tab := newTable(plans{})
	started := metav1.NewMicroTime(time.Unix(2000, 0))
	fake.Feed(cluster, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.StartTime, b.Status.TimeLimit = v1alpha1.StateRunning, &started, 10
		b.Status.Suspended = 300
	}))
	if end := tab.Get(1).End; end != 2900 {
		t.Errorf("it ends at %d, want 2900", end)
	}
}

// A job that was suspended when it was cancelled has ended when it was suspended, and its
// run time is that before: as in scontrol of Slurm 22.05.8.
func TestEndOfSuspendedJob(t *testing.T) {
	at := func(seconds int64) *metav1.MicroTime {
		m := metav1.NewMicroTime(time.Unix(seconds, 0))
		return &m
	}
	cluster, tab := newTable(plans{})
	fake.Feed(cluster, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		b.Status = v1alpha1.BatchJobStatus{
			State: v1alpha1.StateCancelled, StartTime: at(2000), EndTime: at(2090), SuspendTime: at(2090), Suspended: 44,
			History: []v1alpha1.StateChange{
				{State: v1alpha1.StateRunning, At: *at(2000)}, {State: v1alpha1.StateSuspended, At: *at(2010)},
				{State: v1alpha1.StateRunning, At: *at(2014)}, {State: v1alpha1.StateSuspended, At: *at(2050)},
				{State: v1alpha1.StateCompleting, At: *at(2090)}, {State: v1alpha1.StateCancelled, At: *at(2091)},
			},
		}
	}))
	j := tab.Get(1)
	if j.End != 2050 || j.SuspendTime != 2050 || j.PreSuspend != 46 {
		t.Errorf("it ended at %d and was suspended at %d after %d s; want 2050, 2050 and 46 s", j.End, j.SuspendTime, j.PreSuspend)
	}
	if got := format.Elapsed(&j.Job, &format.Settings{Now: 9000}); got != 46 {
		t.Errorf("it ran for %d s, want 46", got)
	}
}
