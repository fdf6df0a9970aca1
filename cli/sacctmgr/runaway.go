package sacctmgr

import (
	"context"
	"fmt"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

var runawayColumns = []column{
	col(12, "ID"), col(10, "Name"), col(10, "Partition"), col(10, "Cluster"), col(10, "State"),
	col(19, "TimeSubmit"), col(19, "TimeStart", "Start"), col(19, "TimeEnd", "End"),
}

// unfinished are the states of records whose jobs have not ended.
var unfinished = []string{"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING"}

// showRunawayJobs prints the records of jobs that have not ended according to
// the database and that are not in the queue: their objects were deleted.
func (o *Options) showRunawayJobs(ctx context.Context, _ []string) error {
	server, err := o.server()
	if err != nil {
		return err
	}
	operator, err := o.operator(ctx)
	if err != nil {
		return err
	}
	if !operator {
		fmt.Fprintln(o.p.Err, "sacctmgr: error: You must have an AdminLevel>=Operator to fix runaway jobs")
		return failed()
	}
	queue, err := server.Jobs(ctx, jobs.Filter{States: jobs.AllStates, Fields: []string{"id"}})
	if err != nil {
		return err
	}
	live := map[int64]bool{}
	for i := range queue.Items {
		live[queue.Items[i].ID] = true
	}
	list, err := server.Records(ctx, &status.RecordQuery{States: unfinished, NoSteps: true, Start: 1, End: queue.Time})
	if err != nil {
		return err
	}
	var rows []row
	for i := range list.Items {
		if r := &list.Items[i]; !live[r.ID] {
			rows = append(rows, row{values: map[string]string{
				"ID": fmt.Sprint(r.ID), "Name": r.Name, "Partition": r.Partition, "Cluster": list.Cluster,
				"State":      r.State,
				"TimeSubmit": o.formatTime(r.Submit), "TimeStart": o.formatTime(r.Start),
				"TimeEnd": o.formatTime(r.End),
			}})
		}
	}
	if len(rows) == 0 {
		return o.p.Print("Runaway Jobs: No runaway jobs found on cluster " + list.Cluster + "\n")
	}
	const note = "NOTE: Runaway jobs are jobs that don't exist in the controller but have a start time and no end time in the database\n"
	if err := o.p.Print(note); err != nil {
		return err
	}
	selected, err := selectColumns(runawayColumns, "ID,Name,Partition,Cluster,State,TimeSubmit,TimeStart,TimeEnd")
	if err != nil {
		return err
	}
	return o.print(selected, rows)
}
