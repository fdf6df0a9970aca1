// Command berth-tools has the subcommands of berth that use the types of Kubernetes, such as
// sim; `berth sim` runs it.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/export"
	importer "github.com/berth-hpc/berth/cli/import"
	"github.com/berth-hpc/berth/cli/sim"
	"github.com/berth-hpc/berth/cli/tools"
	"github.com/berth-hpc/berth/cli/translate"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(tools.Main(stdio.System(), export.Commands, importer.Commands, sim.Commands, translate.Commands))
}
