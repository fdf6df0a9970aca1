package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// made is where the status is that a job's object was made with; nil: only jobs
// that were split off and those of workloads are made so.
func (b *BatchJob) made() *[]byte {
	switch {
	case b.Spec.Workload != nil:
		return &b.Spec.Workload.Status
	case b.Spec.Origin != nil:
		return &b.Spec.Origin.Status
	}
	return nil
}

// BeginWith makes s the status that a job begins with which was split off, or
// stands for pods: one write makes the object and starts the job. b must have an
// Origin or a Workload.
func (b *BatchJob) BeginWith(s *BatchJobStatus) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("status of %s: %w", b.Name, err)
	}
	*b.made() = text
	return nil
}

// Begun tells whether the object as the API server has it was made with a
// status, or has one.
func (b *BatchJob) Begun() bool {
	m := b.made()
	return b.Status.State != "" || m != nil && len(*m) > 0
}

// TakeStatus gives a job that was read the status that it began with, unless
// it has one of its own.
func (b *BatchJob) TakeStatus() {
	m := b.made()
	if m == nil || len(*m) == 0 {
		return
	}
	text := *m
	if *m = nil; b.Status.State != "" {
		return
	}
	s := BatchJobStatus{}
	if json.Unmarshal(text, &s) == nil { // only the scheduler writes it
		s.Unwritten = true
		b.Status = s
	}
}
