// Command srun is Slurm's srun on Kubernetes.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(cli.Main("srun", os.Args[1:], stdio.System(), cli.Deps{}))
}
