package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// An object cannot be created with a status: the API server drops it. A job that
// starts with its object, a task split off its array or the job of pods, has its
// first status in its spec, so that one write creates the object and starts the
// job. That initial status counts until the object has a status of its own.

// initialStatus returns the field of the spec that holds the initial status; nil:
// a job that a command submitted has none.
func (b *BatchJob) initialStatus() *[]byte {
	switch {
	case b.Spec.Workload != nil:
		return &b.Spec.Workload.Status
	case b.Spec.Origin != nil:
		return &b.Spec.Origin.Status
	}
	return nil
}

// SetInitialStatus puts s into the spec as the status that b is created with. b
// must have an Origin or a Workload.
func (b *BatchJob) SetInitialStatus(s *BatchJobStatus) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("status of %s: %w", b.Name, err)
	}
	*b.initialStatus() = text
	return nil
}

// HasStatus reports whether the object has a status of its own or was created
// with one.
func (b *BatchJob) HasStatus() bool {
	text := b.initialStatus()
	return b.Status.State != "" || text != nil && len(*text) > 0
}

// InitialStatus returns the status that the object was created with, as long as it
// counts: nil if there is none, or the object has a status of its own.
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

// DropInitialStatus removes the initial status from b's copy in memory. What it
// came from is not changed.
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

// CurrentStatus returns the status that counts for the object: its own or, until
// it has one, the one it was created with.
func (b *BatchJob) CurrentStatus() *BatchJobStatus {
	if s := b.InitialStatus(); s != nil {
		return s
	}
	return &b.Status
}
