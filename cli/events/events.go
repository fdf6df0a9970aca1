// Package events is berth events: what happened to a job, in the order of time, from the
// accounting records of its runs and steps and from the events of its pods.
package events

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the access to a cluster that berth events needs.
type Cluster interface {
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Pods(ctx context.Context, id int64, usage bool) (*status.PodList, error)
}

// Commands returns berth's subcommands of this package.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{New(p, func() (Cluster, error) { return jobs.Connect(p) })}
}

// New returns the command. connect is called once, when it runs.
func New(p *stdio.Process, connect func() (Cluster, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "events JOB...",
		Short: "Show what happened to a job",
		Long: `Show what happened to a job, in the order of time: when it was submitted, why it
waits or waited, when and where it started, its steps, when it was suspended or
requeued and why, and how it ended. Earlier runs of a job that was requeued are
included, and so are Kubernetes' events about pods that still exist.

A JOB is an id as of sacct: 12, 12_3 or 12+1. The cluster needs accounting.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := connect()
			if err != nil {
				return err
			}
			return run(c.Context(), p, client, args)
		},
	}
}

// run prints the stories of the jobs. It fails if one of them does not exist.
func run(ctx context.Context, p *stdio.Process, c Cluster, ids []string) error {
	list, err := c.Records(ctx, &status.RecordQuery{Jobs: ids, Duplicates: true})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return &slurmerr.Error{Code: 1, Message: jobs.ErrInvalidID}
	}
	queued := map[int64]*status.Job{}
	// A job that has left the queue is no error: its records tell everything.
	if rows, err := c.Jobs(ctx, jobs.Filter{IDs: ids, States: jobs.AllStates}); err == nil {
		for i := range rows.Items {
			queued[rows.Items[i].ID] = &rows.Items[i]
		}
	}
	out := writer{settings: &format.Settings{Now: list.Time, Location: p.Now().Location()}}
	for i, runs := range byJob(list.Items) {
		last := runs[len(runs)-1]
		row := queued[last.ID]
		if row != nil && row.UID != last.UserID {
			row = nil // another job, which has got the id since
		}
		var pods []status.Pod
		if row != nil && row.NodeList != "" {
			// They are shown to the owner and to operators only.
			if found, err := c.Pods(ctx, row.ID, false); err == nil {
				pods = found.Items
			}
		}
		if i > 0 {
			out.text = append(out.text, '\n')
		}
		out.story(runs, row, pods)
	}
	return p.Print(string(out.text))
}

// byJob groups the records by job, in their order.
func byJob(records []status.Record) [][]*status.Record {
	var out [][]*status.Record
	at := map[string]int{}
	for i := range records {
		r := &records[i]
		key := fmt.Sprintf("%s/%s", r.UID, format.AcctID(r))
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, nil)
		}
		out[at[key]] = append(out[at[key]], r)
	}
	return out
}
