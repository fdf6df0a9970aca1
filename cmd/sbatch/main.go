// Command sbatch is Slurm's sbatch on Kubernetes.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/sbatch"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(run.Main("sbatch", os.Args[1:], stdio.System(), func(p *stdio.Process) run.Runner {
		return sbatch.New(p, func() (sbatch.Cluster, error) { return run.Connect(p, "sbatch") })
	}))
}
