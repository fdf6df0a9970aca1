package option

import (
	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/slurmerr"
)

// Asks tells whether an option wants a text (--help, --gres=help) and nothing
// else. What stands behind it is not looked at.
func (c *Client) Asks() bool { return c.Help || c.Usage || c.Version || c.Print != "" }

// Answer prints the text that is asked for, in the name of command of, and
// tells whether there was one. The error carries the exit code, which after
// some texts is that of an error.
func (c *Client) Answer(of Command, show func(text string) error) (asked bool, err error) {
	switch {
	case c.Help:
		return true, show(Help(of))
	case c.Usage:
		return true, show(Usage(of))
	case c.Version:
		return true, show("slurm " + build.Slurm + "\n")
	case c.Print == "":
		return false, nil
	}
	if err = show(c.Print); err == nil && c.PrintCode != 0 {
		err = &slurmerr.Error{Code: c.PrintCode}
	}
	return true, err
}
