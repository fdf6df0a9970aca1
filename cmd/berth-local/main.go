// Command berth-local runs a whole Berth cluster on one machine.
package main

import (
	"os"

	"github.com/berth-hpc/berth/internal/localcluster/command"
	"github.com/berth-hpc/berth/internal/localcluster/parts"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(command.Main(os.Args[1:], stdio.System(), parts.All()))
}
