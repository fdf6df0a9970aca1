// Command agent is the first process of every pod of a job.
package main

import (
	"os"

	"github.com/berth-hpc/berth/internal/agent"
)

func main() {
	os.Exit(agent.Main(os.Args, os.Environ()))
}
