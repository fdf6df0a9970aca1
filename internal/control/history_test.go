package control

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

func TestStatusKeepsTheAttemptsThatWereRequeued(t *testing.T) {
	var s v1alpha1.BatchJobStatus
	step := func(sec int64, change func(*v1alpha1.BatchJobStatus)) {
		s = StatusAfter(&s, time.Unix(sec, 0), change)
	}
	start, end := metav1.NewMicroTime(time.Unix(10, 0)), metav1.NewMicroTime(time.Unix(20, 0))
	step(10, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Attempt, s.StartTime = v1alpha1.StateConfiguring, 1, &start
		s.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{
			{Name: "n1", CPUs: 2, Memory: 100, GRES: []v1alpha1.GRESAllocation{{Name: "gpu", Count: 1}}},
			{Name: "n2", CPUs: 2, Memory: 100, GRES: []v1alpha1.GRESAllocation{{Name: "gpu", Count: 2}}}}}
	})
	step(11, func(s *v1alpha1.BatchJobStatus) { s.State = v1alpha1.StateRunning })
	step(11, func(s *v1alpha1.BatchJobStatus) { s.TimeLimit = 5 })
	step(20, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Final, s.EndTime, s.Requeues = v1alpha1.StateCompleting, v1alpha1.StatePending, &end, 1
	})
	step(21, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Final, s.Allocation, s.StartTime, s.EndTime = v1alpha1.StatePending, "", nil, nil, nil
		s.Restarts, s.Requeues = 1, 2
	})
	if len(s.Past) != 1 || len(s.History) != 1 || s.History[0].State != v1alpha1.StatePending {
		t.Fatalf("%+v", s)
	}
	p := s.Past[0]
	if p.State != status.StateRequeued || p.NodeList != "n[1-2]" || p.CPUs != 4 || p.GRES[0].Count != 3 || len(p.History) != 3 ||
		!p.Start.Equal(&start) || !p.End.Equal(&end) || p.Attempt != 1 || p.Restarts != 0 {
		t.Errorf("%+v", p)
	}
	// The API server does not accept null for a time, so that it would refuse all later changes.
	if b, err := json.Marshal(p); err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("%s, %v", b, err)
	}
	step(30, func(s *v1alpha1.BatchJobStatus) { s.State = v1alpha1.StateCancelled })
	step(31, func(s *v1alpha1.BatchJobStatus) { s.State, s.Restarts = v1alpha1.StatePending, 2 })
	if len(s.Past) != 2 || !s.Past[1].Queued.Equal(&end) {
		t.Errorf("%+v", s.Past)
	}
	for i := range int64(200) {
		step(100+2*i, func(s *v1alpha1.BatchJobStatus) { s.State = v1alpha1.StateFailed })
		step(101+2*i, func(s *v1alpha1.BatchJobStatus) { s.State = v1alpha1.StatePending })
	}
	if len(s.Past) > 32 || len(s.History) > 64 {
		t.Errorf("%d past, %d changes: want at most 32 and 64", len(s.Past), len(s.History))
	}
}

// An attempt whose start failed counts as a restart, so it has its own record in
// accounting, and that record must end.
func TestStatusKeepsTheAttemptsWhoseStartFailed(t *testing.T) {
	var s v1alpha1.BatchJobStatus
	step := func(sec int64, change func(*v1alpha1.BatchJobStatus)) {
		s = StatusAfter(&s, time.Unix(sec, 0), change)
	}
	end := metav1.NewMicroTime(time.Unix(20, 0))
	step(10, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Attempt = v1alpha1.StateConfiguring, 1
		s.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2}}}
	})
	step(20, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Final, s.EndTime, s.Message = v1alpha1.StateCompleting, v1alpha1.StatePending, &end, "node n1 was lost"
	})
	step(21, func(s *v1alpha1.BatchJobStatus) {
		s.State, s.Final, s.Allocation, s.EndTime, s.Restarts = v1alpha1.StatePending, "", nil, nil, 1
	})
	if len(s.Past) != 1 {
		t.Fatalf("%d past attempts, want 1", len(s.Past))
	}
	p := s.Past[0]
	if p.State != v1alpha1.StateNodeFail || p.NodeList != "n1" || !p.End.Equal(&end) || p.Attempt != 1 || p.Restarts != 0 ||
		p.Message != "node n1 was lost" {
		t.Errorf("%+v", p)
	}
}
