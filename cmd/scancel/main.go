// Command scancel is Slurm's scancel on Kubernetes.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/scancel"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(run.Main("scancel", os.Args[1:], stdio.System(), func(p *stdio.Process) run.Runner {
		return scancel.New(p, func() (scancel.Queue, error) { return jobs.Connect(p) })
	}))
}
