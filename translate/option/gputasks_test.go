package option_test

import (
	"math"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// TestTasksOfGPUs checks that --ntasks-per-gpu determines the tasks from the GPUs, or the
// GPUs from the tasks, as in Slurm 22.05.8.
func TestTasksOfGPUs(t *testing.T) {
	for line, want := range map[string]struct {
		tasks int32
		gpus  int64
	}{
		"-G2 --ntasks-per-gpu=2":                   {4, 2},
		"--gres=gpu:tesla:1 --ntasks-per-gpu=3":    {3, 1},
		"-N2 --gpus-per-node=1 --ntasks-per-gpu=2": {4, 1},
		"-n4 --ntasks-per-gpu=2":                   {4, 2},
		"-n1 -G4 --ntasks-per-gpu=2":               {1, 4},

		// Products beyond the largest number of tasks do not wrap.
		"-G2147483647 --ntasks-per-gpu=2147483647":                         {job.MaxTasks, math.MaxInt32},
		"-N1000000 --gpus-per-node=2147483647 --ntasks-per-gpu=2147483647": {job.MaxTasks, math.MaxInt32},
	} {
		p, err := option.Parse(option.Sbatch, append(strings.Fields(line), "job.sh"), nil)
		if err == nil {
			err = p.Verify()
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		s := p.Job.Shape
		if s.Tasks != want.tasks || len(s.GRES) != 1 || s.GRES[0].Count != want.gpus || s.GRES[0].Name != "gpu" {
			t.Errorf("%s: %d tasks, %+v, want %+v", line, s.Tasks, s.GRES, want)
		}
		if strings.HasPrefix(line, "-n") && !strings.Contains(line, "-G") && s.GRES[0].Per != job.PerJob {
			t.Errorf("%s: %+v", line, s.GRES)
		}
	}
}

// TestTasksWithoutWholeGPUs: tasks that are no multiple of those of a GPU are refused, and
// fewer than those of one GPU get none, with Slurm's message.
func TestTasksWithoutWholeGPUs(t *testing.T) {
	p, err := option.Parse(option.Sbatch, []string{"-n5", "--ntasks-per-gpu=2", "job.sh"}, nil)
	if err == nil {
		err = p.Verify()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "Failed to validate job spec, -n/--ntasks has to be a multiple of") {
		t.Errorf("5 tasks: %v", err)
	}
	p, err = option.Parse(option.Sbatch, []string{"-n2", "--ntasks-per-gpu=4", "job.sh"}, nil)
	if err == nil {
		err = p.Verify()
	}
	if err != nil || len(p.Job.Shape.GRES) != 0 || len(p.Warnings) != 1 ||
		!strings.Contains(p.Warnings[0], "Failed to add generated GRES gres:gpu:0") {
		t.Errorf("2 tasks: %v, %+v", err, p)
	}
}
