package data

import (
	"context"
	"io"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the part of internal/jobs.Client that the terminal UI uses. It is
// safe for concurrent use.
type Cluster interface {
	Watch(ctx context.Context, f jobs.Filter, each func(*status.JobEvent) error, lost func(error)) error
	WatchNodes(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Nodes(ctx context.Context) (*status.NodeList, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
	Steps(ctx context.Context, f jobs.StepFilter) (*status.StepList, error)
	// Pods returns the state of a job's pods, and with usage what they use.
	Pods(ctx context.Context, id int64, usage bool) (*status.PodList, error)
	Operate(ctx context.Context, op status.Operation) (*status.OperationResult, error)
	// Attach connects to the agent of a job's first node.
	Attach(ctx context.Context, id int64) (io.ReadWriteCloser, error)
	User() string
}
