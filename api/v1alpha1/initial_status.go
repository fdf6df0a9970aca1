package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// The API server removes the status of an object that is created. A job that starts with
// the creation of its object (a task that was split off its array, or the job of a
// workload) therefore has its first status in its spec, so that one write creates the
// object and starts the job. This initial status applies until the object has a status.

// initialStatus returns the field of the spec that has the initial status; nil for a job
// that a command submitted.
func (b *BatchJob) initialStatus() *[]byte {
	switch {
	case b.Spec.Workload != nil:
		return &b.Spec.Workload.Status
	case b.Spec.Origin != nil:
		return &b.Spec.Origin.Status
	}
	return nil
}

// SetInitialStatus sets the status with which b is created. b must have an Origin or a
// Workload.
func (b *BatchJob) SetInitialStatus(s *BatchJobStatus) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("status of %s: %w", b.Name, err)
	}
	*b.initialStatus() = text
	return nil
}

// HasStatus reports whether the object has a status or an initial status.
func (b *BatchJob) HasStatus() bool {
	text := b.initialStatus()
	return b.Status.State != "" || text != nil && len(*text) > 0
}

// InitialStatus returns the initial status, or nil if there is none or the object has a
// status.
func (b *BatchJob) InitialStatus() *BatchJobStatus {
	text := b.initialStatus()
	if text == nil || len(*text) == 0 || b.Status.State != "" {
		return nil
	}
	s := &BatchJobStatus{}
	if json.Unmarshal(*text, s) != nil { // only the scheduler writes it
		return nil
	}
	return s
}

// DropInitialStatus removes the initial status from b, which must be a copy in memory. It
// does not modify what b was copied from.
func (b *BatchJob) DropInitialStatus() {
	switch {
	case b.Spec.Workload != nil:
		w := *b.Spec.Workload
		w.Status, b.Spec.Workload = nil, &w
	case b.Spec.Origin != nil:
		o := *b.Spec.Origin
		o.Status, b.Spec.Origin = nil, &o
	}
}

// CurrentStatus returns the status of the object or, until it has one, its initial
// status.
func (b *BatchJob) CurrentStatus() *BatchJobStatus {
	if s := b.InitialStatus(); s != nil {
		return s
	}
	return &b.Status
}
