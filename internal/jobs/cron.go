package jobs

import (
	"context"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// CronJob is a job that runs by a schedule (scrontab).
type CronJob struct {
	ID   int64
	Text string // its lines in the crontab
}

// CronJobs lists the jobs in the user's namespace that run by a schedule and have
// not been cancelled.
func (c *Client) CronJobs(ctx context.Context) ([]CronJob, error) {
	var list struct {
		Items []batchJob `json:"items"`
	}
	if err := c.api.Get(ctx, apiRoot+"/namespaces/"+c.Namespace()+"/batchjobs", nil, &list); err != nil {
		return nil, err
	}
	var out []CronJob
	for i := range list.Items {
		b := &list.Items[i]
		text, ok := b.Spec.Job.Options[wire.OptionCronText]
		cancelled := b.Spec.Cancel != nil || b.Metadata.DeletionTimestamp != "" ||
			b.Status.State == status.StateCancelled
		if ok && !cancelled {
			out = append(out, CronJob{b.Spec.JobID, text})
		}
	}
	return out, nil
}
