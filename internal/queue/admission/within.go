package admission

import (
	"errors"
	"fmt"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/job"
)

// within refuses a job that is beyond what may be asked for (package bounds). It
// comes before anything is computed from the job.
func within(b *v1alpha1.BatchJob) error {
	if err := beyond(bounds.Job(&b.Spec.Job)); err != nil {
		return err
	}
	return sizes(b)
}

// Within refuses what a change makes larger than it may be. What the change leaves
// alone is not checked: a job that was stored when a bound was wider may still be
// changed elsewhere.
func (a *Admission) Within(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	if err := beyond(bounds.JobChange(&old.Spec.Job, &now.Spec.Job)); err != nil {
		return err
	}
	for i := range now.Spec.Components {
		var was *job.Job
		if i < len(old.Spec.Components) {
			was = &old.Spec.Components[i]
		}
		if err := beyond(bounds.JobChange(was, &now.Spec.Components[i])); err != nil {
			return err
		}
	}
	if now.StoredBytes() <= old.StoredBytes() {
		return nil
	}
	if err := sizes(now); err != nil {
		return err
	}
	return a.grows(now, caller)
}

// sizes bounds what of a job is a list or counts in bytes as a whole.
func sizes(b *v1alpha1.BatchJob) error {
	if len(b.Spec.Components) >= bounds.MaxComponents {
		return refusef("a heterogeneous job has %d components at most", bounds.MaxComponents)
	}
	return beyond(errors.Join(
		bounds.Payload.Check(b.Spec.PayloadBytes()),
		bounds.Description.Check(b.DescriptionBytes()),
		bounds.Annotations.Check(int64(len(b.Annotations))),
	))
}

// beyond makes a refusal of what package bounds reports: Slurm's words where it
// has some, else the limit.
func beyond(err error) error {
	var e *bounds.Exceeded
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return fmt.Errorf("checking bounds: %w", err)
	case e.Text != "":
		return refuse(refusal.Text(e.Text))
	}
	return refusef("beyond a limit of this cluster: %s", e.Detail())
}
