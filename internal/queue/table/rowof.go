package table

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// RowOf returns the row of a job according to its object, without a plan.
func RowOf(b *v1alpha1.BatchJob, dir *directory.Directory) status.Job {
	var r Row
	r.set(b, nil, dir)
	return r.Job
}
