package option

import (
	"fmt"
	"strings"
)

// Change is something that a release of Slurm after 22.05 changed for users.
type Change struct {
	Release string
	Command string // empty: all commands
	What    string
	State   ChangeState
	Note    string
	// Option is the long name of the option of Command that the change is about.
	Option string
	// Probe is a command line that shows the state on a cluster, and Says what its
	// output contains. Without Probe there is nothing to call.
	Probe, Says string
}

// ChangeState is how far a Change is followed here.
type ChangeState string

// The states of a Change.
const (
	ChangeSupported ChangeState = "supported"
	ChangeWarned    ChangeState = "warned"
	ChangeRefused   ChangeState = "refused"
	ChangeAbsent    ChangeState = "as in 22.05"
)

// Changes returns the table of changes in the order of releases. Callers must not
// change it.
func Changes() []Change { return changes }

// changesSection returns the part of docs/compatibility.md about later releases.
func changesSection() string {
	var b strings.Builder
	b.WriteString(`
## Later releases of Slurm

The commands behave like those of Slurm 22.05.8. This table lists what later releases changed for users, and how far it is followed. *As in
22.05*: the commands know nothing of the change; a new option or field is an error, and what was removed is still there.

| release | command | change | here | note |
|---|---|---|---|---|
`)
	for _, c := range changes {
		command := "all"
		if c.Command != "" {
			command = "`" + strings.ReplaceAll(c.Command, ",", "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.Release, command, cell(c.What), c.State, cell(c.Note))
	}
	return b.String()
}
