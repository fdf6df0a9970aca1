package jobs

import (
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// Screen holds the options of squeue's command line for the terminal UI.
type Screen struct {
	Filter   Filter
	Layout   format.Layout[status.Job] // nil: the terminal UI's own columns
	Order    string                    // as squeue -S; empty: the default
	Settings format.Settings           // without Now
	Flat     bool                      // one line for each array task (-r)
	// CommandLine is the command line without the options that only the terminal UI
	// has, quoted for a shell.
	CommandLine string

	View     string // the first page, such as "nodes"; empty: the queue
	Theme    string // empty: as configured
	ReadOnly bool
	Plain    bool // lines instead of a screen
	ASCII    bool
	NoMouse  bool
}
