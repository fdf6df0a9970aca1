// Package root implements the berth command: commands that Slurm does not have (the
// local cluster, translate, kubeconfig), and every command of Slurm, both as `berth
// squeue` and by its own name in argv[0].
package root

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/root/complete"
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/completion"
	"github.com/berth-hpc/berth/translate/option"
)

// Main runs the program named argv[0] and returns the exit code. more are subcommands
// of berth that main provides.
func Main(argv []string, p *stdio.Process, d cli.Deps, more ...func(*stdio.Process) []*cobra.Command) int {
	if name := cli.Base(argv[0]); cli.Known(name) {
		return cli.Main(name, argv[1:], p, d)
	}
	if len(argv) > 1 && argv[1] == "__complete" {
		own := func(words []string) []completion.Item { return completeOwn(p, d, more, words) }
		complete.Run(p, argv[2:], connect, cli.Known, own)
		return 0
	}
	// cobra passes --kubeconfig in front of a command to commands that parse their
	// own flags, so it is parsed here.
	file, rest := leadingKubeconfig(argv[1:])
	if file != "" {
		override(p, "KUBECONFIG", file)
	}
	cmd := Command(p, d, more...)
	cmd.SetArgs(rest)
	return cli.Exit(p.Err, "berth", cmd.ExecuteContext(context.Background()))
}

// Command returns the tree of berth's commands, which Main runs and manual pages
// describe.
func Command(p *stdio.Process, d cli.Deps, more ...func(*stdio.Process) []*cobra.Command) *cobra.Command {
	cmd := newRoot(p, d)
	for _, commands := range more {
		cmd.AddCommand(commands(p)...)
	}
	return cmd
}

// leadingKubeconfig removes --kubeconfig from the front of a command line.
func leadingKubeconfig(args []string) (file string, rest []string) {
	for len(args) > 0 {
		if f, ok := strings.CutPrefix(args[0], "--kubeconfig="); ok {
			file, args = f, args[1:]
		} else if args[0] == "--kubeconfig" && len(args) > 1 {
			file, args = args[1], args[2:]
		} else {
			break
		}
	}
	return file, args
}

func newRoot(p *stdio.Process, d cli.Deps) *cobra.Command {
	var file string
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Slurm's commands on a Kubernetes cluster",
		Version:       build.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if file != "" {
				override(p, "KUBECONFIG", file)
			}
		},
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.PersistentFlags().StringVar(
		&file,
		"kubeconfig",
		"",
		"kubeconfig of the cluster to use, in place of $KUBECONFIG",
	)
	root.AddGroup(&cobra.Group{ID: "slurm", Title: "Slurm's commands:"})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(kubeconfig(p), version(p), completionCommand(p), tui(p, d))
	for _, name := range cli.Names() {
		root.AddCommand(slurmCommand(name, p, d))
	}
	return root
}

// kubeconfig returns the command that prints the path of the kubeconfig, for
// `export KUBECONFIG=...`.
func kubeconfig(p *stdio.Process) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the kubeconfig in use", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := kube.Find(p, "")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.Out, cfg.Source)
			return err
		},
	}
}

// version returns the command that prints the version.
func version(p *stdio.Process) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(p.Out, "berth %s (Slurm %s)\n", build.Version, build.Slurm)
		},
	}
}

// tui returns sview under the name `berth tui`.
func tui(p *stdio.Process, d cli.Deps) *cobra.Command {
	c := slurmCommand("sview", p, d)
	c.Use, c.Short, c.GroupID = "tui", "Show the queue in the terminal", ""
	return c
}

// slurmCommand returns a command of Slurm. It parses its own flags, as Slurm's syntax
// (-N2, --exclusive[=user], abbreviations) differs from cobra's.
func slurmCommand(name string, p *stdio.Process, d cli.Deps) *cobra.Command {
	short := "Slurm's " + name
	if about, ok := option.AboutOf(name); ok {
		short = strings.ToUpper(about.Summary[:1]) + about.Summary[1:]
	}
	return &cobra.Command{
		Use: name, Short: short, GroupID: "slurm", DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := cli.Main(name, args, p, d); code != 0 {
				return &slurmerr.Error{Code: code} // the command has printed the error
			}
			return nil
		},
	}
}

// override sets an environment variable of p.
func override(p *stdio.Process, name, value string) {
	q := *p // it is changed in place, and must not call itself
	*p = *q.WithEnv(map[string]string{name: value})
}
