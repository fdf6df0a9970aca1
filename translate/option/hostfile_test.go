package option_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestHostFile checks which nodes SLURM_HOSTFILE gives, as in Slurm 22.05.8: a node for
// each task of srun, and each node once for sbatch and salloc.
func TestHostFile(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if path != "./hosts" {
			t.Errorf("reads %s", path)
		}
		return []byte("n3\nn1\nn1\n"), nil
	}
	for line, want := range map[string]string{
		"srun true": "n3,n1,n1", "srun -n2 -m block true": "n3,n1", "srun -w n2 true": "n2",
		"srun -n5 true":  "Too few NodeNames in Slurm Hostfile\nFailure getting NodeNames from hostfile",
		"sbatch -n3 job": "n1,n3", "sbatch -m arbitrary job": "n1,n3", "sbatch -n5 job": "Too few NodeNames in " +
			"Slurm Hostfile\nFailure getting NodeNames from hostfile",
		"salloc -n2": "n1,n3",
		"salloc -n3": "Asked for 3 tasks have 2 in the nodelist.  Check your nodelist, or set the -n option to be 2",
	} {
		words := strings.Fields(line)
		command := map[string]option.Command{"srun": option.Srun, "sbatch": option.Sbatch, "salloc": option.Salloc}[words[0]]
		p, err := option.Parse(command, words[1:], nil)
		if err != nil {
			t.Fatal(err)
		}
		err = p.ReadHostFile(read, "hosts")
		got := strings.Join(p.Job.Placement.NodeList, ",")
		if err != nil {
			got = text(err)
		} else if implied := !p.Has("nodelist"); implied != (p.Job.Placement.Distribution == "arbitrary") {
			t.Errorf("%s: distribution %q", line, p.Job.Placement.Distribution)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
