// Command agent is the first process of every pod of a job. As `agent connect
// PORT` within the job it is the login node's way to what listens there.
package main

import (
	"os"

	"github.com/berth-hpc/berth/internal/agent"
	"github.com/berth-hpc/berth/loginnode/injob"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == injob.Arg {
		os.Exit(injob.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(agent.Main(os.Args, os.Environ()))
}
