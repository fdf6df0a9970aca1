package translate

import (
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// Call is the result of parsing the command line of sbatch without the script.
type Call struct {
	Script  string // the script's name; empty: standard input, or --wrap
	Wrapped bool   // --wrap was given
	// Client holds the options of sbatch itself. If it only prints a text (OnlyPrints),
	// the other fields are not set.
	Client option.Client

	segments [][]string     // the options of each component
	command  []string       // the script and its arguments
	previous *option.Parsed // options that apply to the following components too
}

// Command parses the command line alone. Slurm's sbatch also does so before it
// opens the script, so errors of the command line come first. in needs no script
// yet. Errors are *slurmerr.Error, with Slurm's text.
func Command(in Input) (*Call, error) { return command(&in, false) }

// command is Command; if lenient is true, it also accepts options that Berth refuses.
func command(in *Input, lenient bool) (*Call, error) {
	c := &Call{previous: option.New(option.Sbatch)}
	c.previous.Lenient, c.previous.NotRoot = lenient, in.UID != 0
	c.segments, c.command = Segments(option.Sbatch, in.Args)
	for _, args := range c.segments {
		if err := c.parseComponent(in, args); err != nil || c.Client.OnlyPrints() {
			return c, err
		}
	}
	switch {
	case c.Wrapped && len(c.command) > 0:
		return nil, slurmerr.New(slurmerr.Refused, "Script arguments not permitted with --wrap option")
	case len(c.command) > 0:
		c.Script = c.command[0]
	}
	return c, nil
}

// parseComponent parses the options of one component.
func (c *Call) parseComponent(in *Input, args []string) error {
	p := c.previous
	if err := p.CommandLine(args); err != nil {
		return err
	}
	if c.Client = p.Client; c.Client.OnlyPrints() {
		return nil
	}
	c.Wrapped = c.Wrapped || p.Client.Wrap != nil
	if err := p.ResolveTimes(in.Now); err != nil {
		return err
	}
	if err := resolveGroup(in, p); err != nil {
		return err
	}
	next, err := p.NextComponent()
	c.previous = next
	return err
}
