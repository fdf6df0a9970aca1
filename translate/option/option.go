// Package option is the table of the options of sbatch, srun and salloc (Slurm
// 22.05, and what later releases added up to 25.11): their names, the syntax of
// their values, the commands and variables that accept them, whether Berth
// supports them, and how they change the requested job. The other commands have
// tables of their own. Command lines, script directives, environments, help texts,
// manual pages and the compatibility page all come from these tables. The package
// is pure.
package option

import "sync"

// Command is a set of commands.
type Command uint8

// The commands that share the table.
const (
	Sbatch Command = 1 << iota
	Srun
	Salloc

	all = Sbatch | Srun | Salloc
)

// String returns the name of a single command.
func (c Command) String() string {
	switch c {
	case Sbatch:
		return "sbatch"
	case Srun:
		return "srun"
	case Salloc:
		return "salloc"
	}
	return "slurm"
}

// envPrefix returns the prefix of the command's own input variables.
func (c Command) envPrefix() string {
	switch c {
	case Sbatch:
		return "SBATCH_"
	case Salloc:
		return "SALLOC_"
	}
	return "SLURM_"
}

// ArgKind says whether an option has a value.
type ArgKind uint8

// The kinds of options.
const (
	NoArg ArgKind = iota
	RequiredArg
	OptionalArg // only as --name=value or -xvalue
)

// Status says whether Berth supports an option.
type Status uint8

// No option is ignored silently: it has its effect, or the user gets a warning
// that it has none, or the command refuses it.
const (
	Supported Status = iota
	Warned           // accepted; a warning says that it has no effect
	Refused          // an error says why
)

// String returns the status as the compatibility page shows it.
func (s Status) String() string {
	return [...]string{"supported", "warned", "refused"}[s]
}

// Group is the section of the help text that lists the option.
type Group uint8

// The sections, in the order of the help text.
const (
	GroupJob Group = iota
	GroupSize
	GroupMemory
	GroupGPU
	GroupNodes
	GroupTime
	GroupFiles
	GroupContainer
	GroupStep
	GroupOther
	groupCount
)

var groupTitles = [groupCount]string{
	"Job", "Size", "Memory", "GPUs and other resources", "Nodes", "Time", "Files and environment", "Containers",
	"Tasks and steps", "Other",
}

// Option is one row of a table.
type Option struct {
	Name    string   // long name
	Short   byte     // letter, or 0
	Aliases []string // other long names that Slurm accepts
	// LetterOnly: Slurm has only the letter; the name is for the table.
	LetterOnly bool
	Arg        ArgKind
	Meta       string // the value's placeholder in the help text
	In         Command

	// Env is the input variable's name without the command's prefix (SBATCH_,
	// SALLOC_, SLURM_ of srun); empty: none. EnvFull adds variables by their full
	// names, for the commands that read them; they have lower precedence.
	Env     string
	EnvFull map[Command][]string

	// Since is the release of Slurm that added the option, or "pyxis" for options
	// of that plugin; empty: 22.05 has it.
	Since string

	Status Status
	Reason string // why it has no effect or is refused
	// RootOnly: of a refused option, the setter refuses other users than root in Slurm's words.
	RootOnly bool
	// Warning replaces the warning of an option without effect by Slurm's own.
	Warning string
	// Limits replace Status and Reason for some commands.
	Limits []Limit

	Group Group
	Help  string // one line

	set setter
}

// Limit is a different status for some commands.
type Limit struct {
	In     Command
	Status Status
	Reason string
}

// setter stores a value in p; hasValue is false for an optional value that is
// missing. It returns value.ErrInvalid, errNumber or a *slurmerr.Error.
type setter func(p *Parsed, v string, hasValue bool) error

// For returns the status of o in command c, and the reason for it.
func (o *Option) For(c Command) (Status, string) {
	for _, l := range o.Limits {
		if l.In&c != 0 {
			return l.Status, l.Reason
		}
	}
	return o.Status, o.Reason
}

// EnvNames returns the input variables of o for command c; later ones win.
func (o *Option) EnvNames(c Command) []string {
	names := append([]string(nil), o.EnvFull[c]...)
	if o.Env != "" {
		names = append(names, c.envPrefix()+o.Env)
	}
	return names
}

// Table returns every option of sbatch, srun and salloc, in the order of the help
// text. Callers must not change it.
func Table() []*Option { return table() }

// Lookup returns the option of command c with the given long name or alias, or nil
// if c has none.
func Lookup(c Command, name string) *Option {
	for _, o := range byName()[name] {
		if o.In&c != 0 {
			return o
		}
	}
	return nil
}

// The tables are made when they are first used: most programs use none of these.
var (
	table    = sync.OnceValue(buildTable)
	byName   = sync.OnceValue(func() map[string][]*Option { return indexByName(table()) })
	grammars = map[Command]func() *grammar{Sbatch: grammarOf(Sbatch), Srun: grammarOf(Srun), Salloc: grammarOf(Salloc)}
)

func buildTable() []*Option {
	var t []*Option
	for _, rows := range [][]*Option{
		jobOptions(), sizeOptions(), memoryOptions(), gpuOptions(), nodeOptions(), timeOptions(), fileOptions(),
		stepOptions(), otherOptions(), laterOptions(), containerOptions(),
	} {
		t = append(t, rows...)
	}
	return t
}

// grammarOf returns a function that returns the grammar of the command line of c.
func grammarOf(c Command) func() *grammar {
	return sync.OnceValue(func() *grammar {
		g := &grammar{sorted: true}
		for _, o := range table() {
			if o.In&c != 0 {
				g.options = append(g.options, o)
			}
		}
		return g
	})
}

// indexByName returns the rows of each name. A name may have several rows: -W,
// --wait differs between sbatch and srun.
func indexByName(t []*Option) map[string][]*Option {
	m := make(map[string][]*Option, len(t)+16)
	for _, o := range t {
		for _, n := range o.names() {
			m[n] = append(m[n], o)
		}
	}
	return m
}
