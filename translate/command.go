package translate

import (
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// Call is what the command line of sbatch says by itself.
type Call struct {
	Script  string // the script's name; empty: standard input, or --wrap
	Wrapped bool   // --wrap is given
	// Client may ask for a text; then there is nothing else to do.
	Client option.Client

	segments [][]string     // the options of each component
	command  []string       // the script and its arguments
	before   *option.Parsed // what the parts say for components that follow them
}

// Command reads the command line alone. Slurm's sbatch does so too before it
// opens the script, so that a wrong value is complained of first. in needs no
// script yet. Errors are *slurmerr.Error, with Slurm's text.
func Command(in Input) (*Call, error) { return command(&in, false) }

// command is Command; lenient takes the options that are refused as well.
func command(in *Input, lenient bool) (*Call, error) {
	c := &Call{before: option.New(option.Sbatch)}
	c.before.Lenient = lenient
	c.segments, c.command = Segments(option.Sbatch, in.Args)
	for _, args := range c.segments {
		if err := c.part(in, args); err != nil || c.Client.Asks() {
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

// part reads the options of one component.
func (c *Call) part(in *Input, args []string) error {
	p := c.before
	if err := p.CommandLine(args); err != nil {
		return err
	}
	if c.Client = p.Client; c.Client.Asks() {
		return nil
	}
	c.Wrapped = c.Wrapped || p.Client.Wrap != nil
	if err := p.ResolveTimes(in.Now); err != nil {
		return err
	}
	if err := runAs(in, p); err != nil {
		return err
	}
	next, err := p.Next()
	c.before = next
	return err
}
