// Command berth is every command in one binary: `berth up`, `berth squeue`,
// and each Slurm-named command under its own name by a link.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/doctor"
	"github.com/berth-hpc/berth/cli/events"
	"github.com/berth-hpc/berth/cli/root"
	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/slurmrestd"
	"github.com/berth-hpc/berth/cli/tools"
	"github.com/berth-hpc/berth/cli/up"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	deps := cli.Deps{Slurmrestd: func(p *stdio.Process) run.Runner { return slurmrestd.New(p) }}
	os.Exit(root.Main(os.Args, stdio.System(), deps,
		up.Commands, doctor.Commands, events.Commands, tools.Commands))
}
