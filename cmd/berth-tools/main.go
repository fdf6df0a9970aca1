// Command berth-tools has the subcommands of berth that use the types of Kubernetes, such as
// sim; `berth sim` runs it.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/cli/export"
	importer "github.com/berth-hpc/berth/cli/import"
	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/sim"
	"github.com/berth-hpc/berth/cli/translate"
	"github.com/berth-hpc/berth/internal/stdio"
)

func main() {
	p := stdio.System()
	var kubeconfig string
	// It is called berth, as in the command line that the user sees.
	root := &cobra.Command{Use: "berth", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if kubeconfig != "" {
				q := *p
				*p = *q.WithEnv(map[string]string{"KUBECONFIG": kubeconfig})
			}
		}}
	root.PersistentFlags().StringVar(&kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster to use, in place of $KUBECONFIG")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	for _, commands := range []func(*stdio.Process) []*cobra.Command{
		export.Commands, importer.Commands, sim.Commands, translate.Commands,
	} {
		root.AddCommand(commands(p)...)
	}
	os.Exit(run.Exit(p.Err, "berth", root.ExecuteContext(context.Background())))
}
