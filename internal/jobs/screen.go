package jobs

import (
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// Screen is what squeue's command line asks of the terminal UI.
type Screen struct {
	Filter   Filter
	Layout   format.Layout[status.Job] // nil: the terminal UI's own columns
	Order    string                    // as squeue -S; empty: as usual
	Settings format.Settings           // without Now
	Flat     bool                      // one line for each array task (-r)
	// Line is the command line without the options that only the terminal UI
	// has, as a shell would read it.
	CommandLine string

	View     string // the page to begin with, such as "nodes"; empty: the queue
	Theme    string // empty: as configured
	ReadOnly bool
	Plain    bool // lines instead of a screen
	ASCII    bool
	NoMouse  bool
}
