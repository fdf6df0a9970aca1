package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/status"
)

// table is the part of a metav1.Table that is read here.
type table struct {
	Columns []struct {
		Name string `json:"name"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
				Created   string `json:"creationTimestamp"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

// QueueDown reports whether err means that the queue API does not answer while
// the API server does, so that OwnJobs may still tell something.
func QueueDown(err error) bool { return kube.KindOf(err) == kube.Unavailable }

// OwnJobs lists the jobs of the user's own namespace without the queue API,
// with the few fields that the API server knows by itself.
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
		list.Items = append(list.Items, complete(j, row.Object.Metadata.Namespace, row.Object.Metadata.Name, row.Object.Metadata.Created))
	}
	return list, nil
}

// complete adds what the object's metadata tells.
func complete(j status.Job, namespace, name, created string) status.Job {
	j.Namespace, j.Object = namespace, name
	if at, err := time.Parse(time.RFC3339, created); err == nil {
		j.Submit = at.Unix()
	}
	if j.State == "" {
		j.State = "PENDING"
	}
	return j
}
