package option_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestTasksOfTopology: -B without -n sets the number of tasks. With --ntasks-per-node, sbatch
// of Slurm 22.05.8 counts the tasks of the nodes instead, and srun does not.
func TestTasksOfTopology(t *testing.T) {
	for line, want := range map[string]int32{
		"sbatch -B1:3:1":                       3,
		"sbatch -B1:3":                         3,
		"sbatch -B1:3:1 --ntasks-per-node=2":   0,
		"sbatch -B1 --ntasks-per-node=2":       0,
		"srun -B1:3:1":                         3,
		"srun -B1:3:1 -N1 --ntasks-per-node=2": 3,
	} {
		words := strings.Fields(line)
		command := option.Sbatch
		if words[0] == "srun" {
			command = option.Srun
		}
		p, err := option.Parse(command, append(words[1:], "true"), nil)
		if err == nil {
			err = p.Verify()
		}
		if err != nil || p.Job.Shape.Tasks != want {
			t.Errorf("%s: %v, %+v", line, err, p)
		}
	}
}
