package env

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// TestDevices checks the variables about the GPUs of a node.
func TestDevices(t *testing.T) {
	w := &wire.Welcome{JobID: 7, Hosts: []wire.Host{{Name: "n1", CPUs: 1, GRES: []wire.HostGRES{
		{Name: "gpu", Type: "tesla", Count: 2, Indexes: "0-1"}, {Name: "gpu", Type: "volta", Count: 1, Indexes: "4"},
	}}}}
	shape := StepShape{Nodes: []StepNode{{Name: "n1", Tasks: []int32{0}}}}
	step := Step(Input{Welcome: w, Job: &job.Job{}}, shape)
	for _, want := range []string{
		"SLURM_GPUS_ON_NODE=3", "SLURM_JOB_GPUS=0,1,4", "CUDA_VISIBLE_DEVICES=0,1,4", "SLURM_STEP_GPUS=0,1,4",
	} {
		if !slices.Contains(step, want) {
			t.Errorf("no %s in %q", want, step)
		}
	}
	w.Hosts[0].GRES = []wire.HostGRES{{Name: "gpu", Count: 1}} // the device plugin selects it
	for _, entry := range Step(Input{Welcome: w, Job: &job.Job{}}, shape) {
		if entry == "SLURM_STEP_GPUS=" || entry == "CUDA_VISIBLE_DEVICES=" {
			t.Errorf("%q", entry)
		}
	}
}
