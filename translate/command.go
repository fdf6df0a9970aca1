package translate

import (
	"errors"

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

	power    []string       // the errors about --power
	segments [][]string     // the options of each component
	command  []string       // the script and its arguments
	last     *option.Parsed // of the last component
}

// Command parses the command line alone. Slurm's sbatch also does so before it
// opens the script, so errors of the command line come first. in needs no script
// yet. Errors are *slurmerr.Error, with Slurm's text.
func Command(in Input) (*Call, error) { return command(&in, false) }

// AfterPower returns an error of sbatch with the errors about --power of the command line, which
// Slurm's prints before it reads the script.
func (c *Call) AfterPower(err error) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	if !ok || len(c.power) == 0 {
		return err
	}
	var lines []string
	for _, text := range c.power {
		lines = append(lines, option.Sbatch.String()+": "+text)
	}
	e.Before = append(lines, e.Before...)
	return e
}

// command is Command; if lenient is true, it also accepts options that Berth refuses.
func command(in *Input, lenient bool) (*Call, error) {
	c := new(Call)
	if err := c.parse(in, lenient); err != nil {
		return nil, c.AfterPower(err)
	}
	return c, nil
}

// parse parses the command line.
func (c *Call) parse(in *Input, lenient bool) error {
	c.segments, c.command = Segments(option.Sbatch, in.Args)
	for _, args := range c.segments {
		if err := c.parseComponent(in, args, lenient); err != nil || c.Client.OnlyPrints() {
			return err
		}
	}
	switch {
	case c.Wrapped && len(c.command) > 0:
		return slurmerr.New(slurmerr.Refused, "Script arguments not permitted with --wrap option")
	case len(c.command) > 0:
		c.Script = c.command[0]
	}
	return nil
}

// parseComponent parses the options of one component.
func (c *Call) parseComponent(in *Input, args []string, lenient bool) error {
	p, err := c.next(in, lenient)
	if err != nil {
		return err
	}
	p.Preliminary, c.last = true, p
	if err := p.CommandLine(args); err != nil {
		return p.Corrected(err, false)
	}
	c.power = append(c.power, p.PowerErrors()...)
	if c.Client = p.Client; c.Client.OnlyPrints() {
		return nil
	}
	c.Wrapped = c.Wrapped || p.Client.Wrap != nil
	if err := p.ResolveTimes(in.Now); err != nil {
		return err
	}
	return resolveGroup(in, p)
}

// next returns the initial options of the component after the last one.
func (c *Call) next(in *Input, lenient bool) (*option.Parsed, error) {
	if c.last != nil {
		return c.last.NextComponent()
	}
	p := option.New(option.Sbatch)
	p.Lenient, p.NotRoot = lenient, in.UID != 0
	return p, nil
}
