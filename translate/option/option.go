// Package option is the one table of the options of sbatch, srun and salloc
// (Slurm 22.05, and what later releases added up to 25.11): their names, the form of their values, the commands and
// variables they come from, what becomes of them here, and how they change the
// job that is asked for. Command lines, script directives, environments, help
// texts and the compatibility page are all read from it; nothing else in Berth
// knows an option by its name. The package is pure.
package option

// Command is a set of commands.
type Command uint8

// The commands that share the table.
const (
	Sbatch Command = 1 << iota
	Srun
	Salloc

	all = Sbatch | Srun | Salloc
)

// String is the name of a single command.
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

// envPrefix is what the command's own input variables begin with.
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

// Status says what becomes of an option.
type Status uint8

// Nothing is ignored without a word: an option does what it says, or the user
// is told that it does not, or the command refuses it.
const (
	Supported Status = iota
	Warned           // accepted; a warning says what is not done
	Refused          // an error says why
)

// String names the status as the compatibility page does.
func (s Status) String() string {
	return [...]string{"supported", "warned", "refused"}[s]
}

// Group is the section of the help text an option stands in.
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
	"Job", "Size", "Memory", "GPUs and other resources", "Nodes", "Time", "Files and environment", "Containers", "Tasks and steps", "Other",
}

// Option is one row of the table.
type Option struct {
	Name    string   // long name
	Short   byte     // letter, or 0
	Aliases []string // other long names that Slurm takes
	Arg     ArgKind
	Meta    string // what the value is, in the help text
	In      Command

	// Env is the input variable's name behind the command's prefix (SBATCH_,
	// SALLOC_, SLURM_ of srun); empty: none. EnvFull adds variables by their
	// whole names, for the commands they are read by; they come first.
	Env     string
	EnvFull map[Command][]string

	// Sets are variables that the option sets in the job, without SLURM_ ahead
	// (sets.go).
	Sets []string

	// Since is the release of Slurm that brought the option, or "pyxis" for
	// options of that plugin; empty: 22.05 has it.
	Since string

	Status Status
	Reason string // what is not done, or why it is refused
	Says   string // Slurm's own words about what is not done, in place of ours
	// Limits replace Status and Reason for some commands.
	Limits []Limit

	Group Group
	Help  string // one line

	// Test names the test that sees the option's effect (tests.go).
	Test string

	set setter
}

// Limit is a different status for some commands.
type Limit struct {
	In     Command
	Status Status
	Reason string
}

// setter takes over a value into p; has is false for an optional value that is
// missing. It returns value.ErrInvalid, errNumber or a *slurmerr.Error.
type setter func(p *Parsed, v string, has bool) error

// For gives status and reason of o in command c.
func (o *Option) For(c Command) (Status, string) {
	for _, l := range o.Limits {
		if l.In&c != 0 {
			return l.Status, l.Reason
		}
	}
	return o.Status, o.Reason
}

// EnvNames lists the input variables of o for command c; later ones win.
func (o *Option) EnvNames(c Command) []string {
	names := append([]string(nil), o.EnvFull[c]...)
	if o.Env != "" {
		names = append(names, c.envPrefix()+o.Env)
	}
	return names
}

// Table lists every option, in the order of the help text. Callers must not
// change it.
func Table() []*Option { return table }

// Lookup finds an option of command c by its long name or an alias of it; nil:
// c has none of that name.
func Lookup(c Command, name string) *Option {
	for _, o := range byName[name] {
		if o.In&c != 0 {
			return o
		}
	}
	return nil
}

var (
	table  = wholeTable()
	byName = index(table)
)

func wholeTable() []*Option {
	var t []*Option
	for _, rows := range [][]*Option{jobOptions(), sizeOptions(), memoryOptions(), gpuOptions(), nodeOptions(),
		timeOptions(), fileOptions(), stepOptions(), otherOptions(), laterOptions(), containerOptions()} {
		t = append(t, rows...)
	}
	for _, o := range t {
		o.Test = testOf(o)
		if o.In&Sbatch != 0 {
			o.Sets = sets[o.Name]
		}
	}
	return t
}

// index keeps every row of a name: -W, --wait is one thing to sbatch and
// another to srun.
func index(t []*Option) map[string][]*Option {
	m := make(map[string][]*Option, len(t)+16)
	for _, o := range t {
		for _, n := range o.names() {
			m[n] = append(m[n], o)
		}
	}
	return m
}
