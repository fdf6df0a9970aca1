package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// BeginWith makes s the status that a job split off begins with: one write
// makes the object and starts the job. b must have an Origin.
func (b *BatchJob) BeginWith(s *BatchJobStatus) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("status of %s: %w", b.Name, err)
	}
	b.Spec.Origin.Status = text
	return nil
}

// TakeStatus gives a job that was read the status that it began with, unless
// it has one of its own.
func (b *BatchJob) TakeStatus() {
	o := b.Spec.Origin
	if o == nil || len(o.Status) == 0 {
		return
	}
	text := o.Status
	if o.Status = nil; b.Status.State != "" {
		return
	}
	s := BatchJobStatus{}
	if json.Unmarshal(text, &s) == nil { // only the scheduler writes it
		s.Unwritten = true
		b.Status = s
	}
}
