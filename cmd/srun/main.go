// Command srun is Slurm's srun on Kubernetes.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/srun"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(run.Main("srun", os.Args[1:], stdio.System(), func(p *stdio.Process) run.Runner {
		return srun.New(p, func() (srun.Cluster, error) { return run.Connect(p, "srun") })
	}))
}
