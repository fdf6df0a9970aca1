// Package translate implements berth translate, which prints the Kubernetes objects for a
// batch script.
package translate

import (
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/cli/translate/objects"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Commands returns the subcommands of berth in this package.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{{
		Use:   "translate [SBATCH OPTIONS] [SCRIPT [ARGUMENTS]]",
		Short: "Print the Kubernetes objects of a batch script",
		Long: `Print the Kubernetes objects of a batch script: the PodGroup and the JobSet, as
YAML. The options are those of sbatch. No cluster is needed: the job has the id
1, runs on nodes called node-1, node-2 and so on, and has the defaults of a new
cluster.`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return c.Help()
			}
			return objects.Run(p, args)
		},
	}}
}
