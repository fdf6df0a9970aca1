package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// table is the part of a metav1.Table that OwnJobs reads.
type table struct {
	Columns []struct {
		Name string `json:"name"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata metadata `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

// IsQueueUnavailable reports whether err means that the API server responds and the queue
// API does not. OwnJobs may work then.
func IsQueueUnavailable(err error) bool { return kube.KindOf(err) == kube.Unavailable }

// OwnJobs lists the jobs of the user's own namespace without the queue API. It
// returns only the fields that the API server has as printer columns.
func (c *Client) OwnJobs(ctx context.Context) (*status.JobList, error) {
	var t table
	if err := c.api.GetTable(ctx, apiRoot+"/namespaces/"+c.Namespace()+"/batchjobs", &t); err != nil {
		return nil, err
	}
	list := &status.JobList{Items: make([]status.Job, 0, len(t.Rows))}
	for _, row := range t.Rows {
		fields := map[string]any{}
		for i, cell := range row.Cells {
			if i < len(t.Columns) {
				fields[strings.ToLower(t.Columns[i].Name)] = cell
			}
		}
		delete(fields, "submitted") // an age, not an instant
		if id, ok := fields["jobid"]; ok {
			fields["id"] = id
		}
		var j status.Job
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &j)
		}
		if err != nil {
			return nil, err
		}
		setMetadata(&j, &row.Object.Metadata)
		list.Items = append(list.Items, j)
	}
	return list, nil
}

// setMetadata sets the fields that come from the object's metadata, and the state of
// a job that has none yet.
func setMetadata(j *status.Job, m *metadata) {
	j.Namespace, j.Object = m.Namespace, m.Name
	if at, err := time.Parse(time.RFC3339, m.CreationTimestamp); err == nil {
		j.Submit = at.Unix()
	}
	if j.State == "" {
		j.State = status.StatePending
	}
}
