//go:build pmix

// Command pmix-server speaks PMIx to the tasks of a step on one node
// (srun --mpi=pmix). The agent starts it.
package main

import (
	"os"

	"github.com/berth-hpc/berth/internal/pmix"
)

func main() {
	os.Exit(pmix.Main(os.Args, os.Stdout, os.Stderr))
}
