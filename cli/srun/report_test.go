package srun

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// TestVerboseInJob checks the lines of srun -v in a job: the options, those of the job's
// environment included, and the nodes of each component. The text is that of Slurm 22.05.8.
func TestVerboseInJob(t *testing.T) {
	const rule = "srun: -------------------- --------------------\n"
	for _, c := range []struct {
		name string
		env  []string
		want string
	}{
		{"job", []string{
			"SLURM_JOB_ID=12", "SLURM_JOB_NAME=job.sh", "SLURM_NTASKS=4", "SLURM_NNODES=3", "SLURM_JOB_NODELIST=n[1-3]",
			"SLURM_JOB_CPUS_PER_NODE=2,1(x2)",
		}, "srun: defined options\n" + rule + "srun: (null)              : n[1-3]\nsrun: jobid               : 12\n" +
			"srun: job-name            : job.sh\nsrun: nodes               : 1\nsrun: ntasks              : 4\n" +
			"srun: verbose             : 1\n" + rule + "srun: end of defined options\n" +
			"srun: jobid 12: nodes(3):`n[1-3]', cpu counts: 2(x1),1(x2)\n"},
		{"components", []string{
			"SLURM_JOB_ID=12", "SLURM_HET_SIZE=2",
			"SLURM_JOB_ID_HET_GROUP_0=12", "SLURM_JOB_NODELIST_HET_GROUP_0=n3", "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=1",
			"SLURM_JOB_ID_HET_GROUP_1=13", "SLURM_JOB_NODELIST_HET_GROUP_1=n[1-2]",
			"SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=1(x2)",
		}, "srun: defined options\n" + rule + "srun: jobid               : 12\nsrun: nodes               : 1\n" +
			"srun: verbose             : 1\n" + rule + "srun: end of defined options\n" +
			"srun: jobid 12: nodes(1):`n3', cpu counts: 1(x1)\nsrun: jobid 13: nodes(2):`n[1-2]', cpu counts: 1(x2)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var output strings.Builder
			p := newProcess(&output)
			p.Dir = func() (string, error) { return "/home", nil }
			p.LookupEnv = func(name string) (string, bool) {
				for _, e := range c.env {
					if v, ok := strings.CutPrefix(e, name+"="); ok {
						return v, true
					}
				}
				return "", false
			}
			parsed, err := option.Parse(option.Srun, []string{"-v", "-N1", "true"}, c.env)
			if err != nil {
				t.Fatal(err)
			}
			New(p, nil).reportOptions(t.Context(), []*option.Parsed{parsed})
			if output.String() != c.want {
				t.Errorf("output\n%swant\n%s", output.String(), c.want)
			}
		})
	}
}

// TestAllocationIsReported checks the line with the id of a job that srun has allocated, on
// which programs rely.
func TestAllocationIsReported(t *testing.T) {
	var output strings.Builder
	host := func(name string, cpus int32) wire.Host { return wire.Host{Name: name, CPUs: cpus} }
	New(newProcess(&output), nil).reportAllocation(&wire.Welcome{
		JobID: 7, Hosts: []wire.Host{host("n1", 3), host("n2", 3), host("n3", 1)},
	})
	if want := "srun: jobid 7: nodes(3):`n[1-3]', cpu counts: 3(x2),1(x1)\n"; output.String() != want {
		t.Errorf("output %q, want %q", output.String(), want)
	}
}

// TestRepeatedNodesAreReported checks the error about a list of nodes that names some nodes
// several times, in a job of three nodes. The texts are those of Slurm 22.05.8.
func TestRepeatedNodesAreReported(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-O", "-n4", "-w", "n2,n1,n1,n1", "true"}, "error: Required nodelist includes more nodes than permitted by " +
			"max-node count (4 > 3). Eliminating nodes from the nodelist."},
		{[]string{"-N2", "-O", "-n4", "-w", "n1,n1,n2", "true"}, "error: Required nodelist includes more nodes than " +
			"permitted by max-node count (3 > 2). Eliminating nodes from the nodelist."},
		{[]string{"-n2", "-w", "n1,n1", "true"}, ""},
		{[]string{"-n1", "-w", "n1,n2", "true"}, ""},
		{[]string{"-m", "arbitrary", "-n4", "-O", "-w", "n1,n1,n2,n2", "true"}, ""},
	} {
		p, err := option.Parse(option.Srun, c.args, []string{"SLURM_JOB_ID=12", "SLURM_JOB_NUM_NODES=3", "SLURM_NTASKS=3"})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := shape(p)
		lines, err := checkNodes(p, &s)
		if got := strings.Join(lines, "\n"); err != nil || got != c.want {
			t.Errorf("%v: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
}
