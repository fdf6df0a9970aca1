package tools

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Main is berth-tools: it runs one of the subcommands with the program's arguments and returns
// the exit code. The program calls itself berth, as the command line does that the user sees.
func Main(p *stdio.Process, subcommands ...func(*stdio.Process) []*cobra.Command) int {
	var kubeconfig string
	root := &cobra.Command{Use: "berth", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if kubeconfig != "" {
				q := *p // it is changed in place, and must not call itself
				*p = *q.WithEnv(map[string]string{"KUBECONFIG": kubeconfig})
			}
		}}
	root.PersistentFlags().StringVar(&kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster to use, in place of $KUBECONFIG")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	for _, commands := range subcommands {
		root.AddCommand(commands(p)...)
	}
	err := root.ExecuteContext(context.Background())
	slurmerr.Print(p.Err, "berth", err)
	return slurmerr.ExitCode(err)
}
