// Command berth-tools has the subcommands of berth that use the types of Kubernetes, such as
// sim; `berth sim` runs it.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/export"
	importer "github.com/berth-hpc/berth/cli/import"
	"github.com/berth-hpc/berth/cli/root"
	"github.com/berth-hpc/berth/cli/sim"
	"github.com/berth-hpc/berth/cli/translate"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	args := append([]string{"berth"}, os.Args[1:]...)
	os.Exit(root.Main(args, stdio.System(), cli.Deps{},
		export.Commands, importer.Commands, sim.Commands, translate.Commands))
}
