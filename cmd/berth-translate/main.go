// Command berth-translate prints the Kubernetes objects that a batch script
// becomes; `berth translate` runs it.
package main

import (
	"os"

	"github.com/berth-hpc/berth/cli/translate/objects"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	os.Exit(objects.Main(os.Args[1:], stdio.System()))
}
