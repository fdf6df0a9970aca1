package jobs

import (
	"context"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// Scheduled is a job that runs by a schedule (scrontab).
type Scheduled struct {
	ID   int64
	Text string // the lines it was made of
}

// Scheduled lists the jobs of the user's namespace that run by a schedule and
// have not been cancelled.
func (c *Client) Scheduled(ctx context.Context) ([]Scheduled, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Deleted string `json:"deletionTimestamp"`
			} `json:"metadata"`
			Spec struct {
				JobID  int64   `json:"jobID"`
				Job    job.Job `json:"job"`
				Cancel *struct {
					By string `json:"by"`
				} `json:"cancel"`
			} `json:"spec"`
			Status struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := c.api.Get(ctx, apiRoot+"/namespaces/"+c.Namespace()+"/batchjobs", nil, &list); err != nil {
		return nil, err
	}
	var out []Scheduled
	for _, b := range list.Items {
		text, ok := b.Spec.Job.Options[wire.OptionCronText]
		if ok && b.Spec.Cancel == nil && b.Metadata.Deleted == "" && b.Status.State != "CANCELLED" {
			out = append(out, Scheduled{b.Spec.JobID, text})
		}
	}
	return out, nil
}
