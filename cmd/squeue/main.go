// Command squeue is Slurm's squeue on Kubernetes.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/squeue"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(run.Main("squeue", os.Args[1:], stdio.System(), func(p *stdio.Process) run.Runner {
		return squeue.New(p, func() (squeue.Lister, error) { return jobs.Connect(p) })
	}))
}
