package env

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// The number of tasks of --ntasks-per-gpu does not wrap.
func TestTasksOfGPUsDoNotWrap(t *testing.T) {
	in := Input{Job: &job.Job{Shape: job.Shape{TasksPerGPU: math.MaxInt32}}, Welcome: &wire.Welcome{}}
	for range 3 {
		in.Welcome.Hosts = append(in.Welcome.Hosts, wire.Host{GRES: []wire.HostGRES{{Name: "gpu", Count: 1 << 31}}})
	}
	if got := in.tasks(); got != job.MaxTasks {
		t.Errorf("%d tasks, want %d", got, job.MaxTasks)
	}
	in.Job.Shape.TasksPerGPU, in.Welcome.Hosts = 2, in.Welcome.Hosts[:1]
	in.Welcome.Hosts[0].GRES[0].Count = 3
	if got := in.tasks(); got != 6 {
		t.Errorf("%d tasks, want 6", got)
	}
}
