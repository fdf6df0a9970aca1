package root

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/root/complete"
	"github.com/berth-hpc/berth/completions"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/completion"
)

// completionCommand returns the command that prints completion scripts.
func completionCommand(p *stdio.Process) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print the completion script of a shell",
		Long: `Print the completion script of a shell for all commands. Packages install it. Without a package:

	bash   source <(berth completion bash)
	zsh    source <(berth completion zsh)
	fish   berth completion fish | source`,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := completions.Script(args[0])
			if err != nil {
				return err
			}
			return p.Print(text)
		},
	}
}

func connect(p *stdio.Process) (complete.Cluster, error) { return jobs.Connect(p) }

// completeOwn completes berth's own command line with cobra.
func completeOwn(
	p *stdio.Process,
	d cli.Deps,
	more []func(*stdio.Process) []*cobra.Command,
	words []string,
) []completion.Item {
	var out bytes.Buffer
	quiet := *p
	quiet.Out, quiet.Err = &out, io.Discard
	cmd := Command(&quiet, d, more...)
	cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, words...))
	if cmd.ExecuteContext(context.Background()) != nil {
		return nil
	}
	var items []completion.Item
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		// The last line is a directive for cobra's own scripts.
		if text, help, _ := strings.Cut(line, "\t"); text != "" && text[0] != ':' {
			items = append(items, completion.Item{Text: text, Help: strings.ReplaceAll(help, "`", "")})
		}
	}
	return items
}
