package env

import (
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// TestStepOfItsOwnAllocation: the variables that tasks of an srun outside of any job have,
// and those that they do not have, as in Slurm 22.05.8.
func TestStepOfItsOwnAllocation(t *testing.T) {
	memory := int64(100)
	in := Input{
		Welcome: &wire.Welcome{JobID: 7, QOS: "normal", DefaultMemory: true, Hosts: []wire.Host{{
			Name: "n1", CPUs: 2, Address: "10.0.0.1:6820",
			GRES: []wire.HostGRES{{Name: "gpu", Count: 1, Indexes: "0"}},
		}}},
		Job: &job.Job{Shape: job.Shape{MemPerCPU: &memory}, Batch: job.Batch{Client: "srun"}},
	}
	shape := StepShape{Nodes: []StepNode{{Name: "n1", Tasks: []int32{0}}}}
	own := []string{
		"SLURM_DISTRIBUTION", "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", "SLURM_NODE_ALIASES", "SLURM_MEM_PER_CPU",
		"SLURM_JOB_GPUS",
	}
	outside := toMap(Step(in, shape))
	for _, name := range own {
		if v, ok := outside[name]; ok {
			t.Errorf("%s=%s", name, v)
		}
	}
	for name, want := range map[string]string{
		"SLURM_JOB_QOS": "normal", "SLURM_SRUN_COMM_PORT": "6820", "SLURM_STEP_LAUNCHER_PORT": "6820",
		"SLURM_STEP_GPUS": "0",
	} {
		if got := outside[name]; got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	in.Job.Batch.Client = ""
	inside := toMap(Step(in, shape))
	for _, name := range own {
		if _, ok := inside[name]; !ok {
			t.Errorf("a step in a job has no %s", name)
		}
	}
	in.Job.Batch.Client = "salloc"
	if v, ok := toMap(Allocation(in))["SLURM_MEM_PER_CPU"]; ok {
		t.Errorf("salloc: SLURM_MEM_PER_CPU=%s comes from the default", v)
	}
	in.Welcome.DefaultMemory = false
	if v := toMap(Allocation(in))["SLURM_MEM_PER_CPU"]; v != "100" {
		t.Errorf("salloc: SLURM_MEM_PER_CPU=%s, want the requested 100", v)
	}
}

// TestSlurmConf: a SLURM_CONF that the user has set is kept.
func TestSlurmConf(t *testing.T) {
	for _, c := range []struct{ have, want string }{{"A=1", SlurmConf}, {"SLURM_CONF=/x", "/x"}} {
		if got, _ := Get(WithSlurmConf([]string{c.have}), "SLURM_CONF"); got != c.want {
			t.Errorf("with %s: %s, want %s", c.have, got, c.want)
		}
	}
}
