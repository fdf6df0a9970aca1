// Command berth-tui is the queue in a terminal, which squeue --tui, sview and
// berth tui run.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/tui"
)

func main() {
	os.Exit(cli.Main("sview", os.Args[1:], stdio.System(), cli.Deps{TUI: tui.Run}))
}
