package option_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestTasksOfTopology: -B without -n sets the number of tasks, and so do the options for its
// counts with a fixed number of nodes. With --ntasks-per-node, sbatch and salloc of Slurm 22.05.8
// count the tasks of the nodes instead, and srun does not.
func TestTasksOfTopology(t *testing.T) {
	for line, want := range map[string]int32{
		"sbatch -B1:3:1":                       3,
		"sbatch -B1:3":                         3,
		"sbatch -B1:3:1 --ntasks-per-node=2":   0,
		"sbatch -B1 --ntasks-per-node=2":       0,
		"sbatch --threads-per-core=2 -N1":      2,
		"sbatch --cores-per-socket=2 -N1-1":    2,
		"sbatch --cores-per-socket=2 -N1-2":    0,
		"sbatch --cores-per-socket=2 -w n1,n2": 4,
		"sbatch --cores-per-socket=2":          0,
		"sbatch --threads-per-core=1 -N2":      2,
		"sbatch -B2 -N2-3":                     0,
		"sbatch -B2 --threads-per-core=2":      4,
		"salloc --cores-per-socket=2 -N1":      2,
		"salloc -B1:2 --ntasks-per-node=1":     0,
		"srun --cores-per-socket=2 -N1":        0,
		// GPUs and --ntasks-per-gpu count more than -B, and -n more than both.
		"sbatch -B1 --gpus=1 --ntasks-per-tres=4":                     4,
		"sbatch -B2 --gpus=1 --ntasks-per-tres=4":                     4,
		"sbatch -B1 -n2 --gpus=1 --ntasks-per-tres=4":                 2,
		"sbatch -B1 -N2 --gpus=2 --ntasks-per-gpu=2":                  4,
		"sbatch -B1:2 --gpus=1 --ntasks-per-gpu=4":                    4,
		"sbatch --threads-per-core=2 -N1 --gpus=1 --ntasks-per-gpu=4": 4,
		"srun -B1:3:1":                         3,
		"srun -B1:3:1 -N1 --ntasks-per-node=2": 3,
	} {
		words := strings.Fields(line)
		command := option.Sbatch
		switch words[0] {
		case "srun":
			command = option.Srun
		case "salloc":
			command = option.Salloc
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
