package option

import (
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/slurmerr"
)

// StartWithin returns the seconds within which a new job must start; nil: no limit. Slurm
// ignores --immediate=0.
func (c *Client) StartWithin() *int32 {
	if c.Immediate == nil || *c.Immediate == 0 {
		return nil
	}
	return c.Immediate
}

// OnlyPrints reports whether an option requests a text (--help, --gres=help) and
// nothing else. The options after it are ignored.
func (c *Client) OnlyPrints() bool { return c.Help || c.Usage || c.Version || c.Print != "" }

// PrintRequested prints the requested text of the given command, and reports
// whether there was one. The error carries the exit code, which after some texts
// is that of an error.
func (c *Client) PrintRequested(command Command, output func(text string) error) (printed bool, err error) {
	switch {
	case c.Help:
		return true, output(Help(command))
	case c.Usage:
		return true, output(Usage(command))
	case c.Version:
		return true, output("slurm " + build.Slurm + "\n")
	case c.Print == "":
		return false, nil
	}
	if err = output(c.Print); err == nil && c.PrintCode != 0 {
		err = &slurmerr.Error{Code: c.PrintCode}
	}
	return true, err
}
