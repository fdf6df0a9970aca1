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

// checkBounds refuses a job that is beyond a bound of package bounds. It is called
// before anything is computed from the job.
func checkBounds(b *v1alpha1.BatchJob) error {
	if err := refuseExceeded(bounds.Job(&b.Spec.Job)); err != nil {
		return err
	}
	return checkSizes(b)
}

// CheckChange refuses what a change makes larger than it may be. The rest is not
// checked, so that a job that was stored when a bound was wider can still be
// changed.
func (a *Admission) CheckChange(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	if err := refuseExceeded(bounds.JobChange(&old.Spec.Job, &now.Spec.Job)); err != nil {
		return err
	}
	for i := range now.Spec.Components {
		var was *job.Job
		if i < len(old.Spec.Components) {
			was = &old.Spec.Components[i]
		}
		if err := refuseExceeded(bounds.JobChange(was, &now.Spec.Components[i])); err != nil {
			return err
		}
	}
	if now.StoredBytes() <= old.StoredBytes() {
		return nil
	}
	if err := checkSizes(now); err != nil {
		return err
	}
	return a.checkGrowth(now, caller)
}

// checkSizes refuses a job with too many components or too many bytes.
func checkSizes(b *v1alpha1.BatchJob) error {
	if len(b.Spec.Components) >= bounds.MaxComponents {
		return refusef("a heterogeneous job has %d components at most", bounds.MaxComponents)
	}
	return refuseExceeded(errors.Join(
		bounds.Payload.Check(b.Spec.PayloadBytes()),
		bounds.Description.Check(b.DescriptionBytes()),
		bounds.Annotations.Check(int64(len(b.Annotations))),
	))
}

// refuseExceeded returns the refusal for an error of package bounds: Slurm's message
// if there is one, else the limit.
func refuseExceeded(err error) error {
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
