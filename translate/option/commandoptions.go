package option

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/slurmerr"
)

// CommandOptions are the options of a command that lists or operates (squeue,
// sinfo, scancel, scontrol). They do not describe a job, and their letters differ
// in meaning from those of sbatch, so each command has its own table.
type CommandOptions struct {
	Name    string // of the command
	Args    string // the operands, in the help text
	Options []*Option
	// More returns further options, which are behind Options in the help text. It makes the
	// tables constants, so that a program that has all of them computes none as it starts.
	More func() []*Option
	// Interspersed: options may follow operands, as getopt_long permutes them.
	// Otherwise they end at the first operand.
	Interspersed bool
	// Terse: the error about an unknown option does not mention --help.
	Terse bool
	// Opening are the first lines of the help text; empty: the usual usage line.
	Opening string
	// Joint is the text between an option's letter and its name in the help text, and
	// Colon the text after them, for commands with an Opening. Empty: a comma, nothing.
	Joint, Colon string

	checks Checks
}

// List returns all options in the order of the help text. Callers must not change them.
func (c *CommandOptions) List() []*Option {
	if c.More == nil {
		return c.Options
	}
	return slices.Concat(c.Options, c.More())
}

// Checks parse the values of options, by long name, or of variables, by theirs, and return an
// error for a wrong one.
type Checks map[string]func(text string) error

// Checked returns c with checks of values. As in Slurm, every value is checked where it
// stands: also one that a later one replaces, and before the words behind; variables first.
func (c *CommandOptions) Checked(checks Checks) *CommandOptions {
	d := *c
	d.checks = checks
	return &d
}

// Values are the options that were given, by long name.
type Values struct {
	values map[string][]string
	order  []string          // names in the order of the command line
	last   map[string]string // the last value of those options that were given with one
}

func (v *Values) add(name, text string) {
	v.values[name] = append(v.values[name], text)
	v.order = append(v.order, name)
}

// LastValue returns the last value of an option whose value is optional; ok is false if it
// was always given without one.
func (v *Values) LastValue(name string) (text string, ok bool) {
	text, ok = v.last[name]
	return text, ok
}

// ValueOrOperand returns the value of an option whose value is optional: the first operand, which
// it removes from rest, or else the last value that the option was given. ok is false if there is
// neither.
func (v *Values) ValueOrOperand(name string, rest *[]string) (text string, ok bool) {
	if len(*rest) == 0 {
		return v.LastValue(name)
	}
	text, *rest = (*rest)[0], (*rest)[1:]
	return text, true
}

// Last returns which of the named options was given last on the command line, or
// "" if none was.
func (v *Values) Last(names ...string) string {
	for _, name := range slices.Backward(v.order) {
		if slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// Occurrences calls each with every one of the named options on the command line, in order, and
// with its value.
func (v *Values) Occurrences(each func(name, text string), names ...string) {
	given := map[string]int{}
	for _, name := range v.order {
		given[name]++
	}
	seen := map[string]int{}
	for _, name := range v.order {
		all := v.values[name]
		text := all[len(all)-given[name]+seen[name]] // variables come first
		seen[name]++
		if slices.Contains(names, name) {
			each(name, text)
		}
	}
}

// FormatAndLong returns the error for a command line with both --format and --long.
func FormatAndLong() error {
	return slurmerr.New(slurmerr.Fatal,
		"Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.")
}

// Has reports whether the option was given.
func (v *Values) Has(name string) bool { return len(v.values[name]) > 0 }

// Count returns how many times the option was given.
func (v *Values) Count(name string) int { return len(v.values[name]) }

// Get returns the last value of the option, or "" if it was not given.
func (v *Values) Get(name string) string {
	all := v.values[name]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// First returns the first value of the option, or "" if it was not given.
func (v *Values) First(name string) string {
	if !v.Has(name) {
		return ""
	}
	return v.values[name][0]
}

// HasEmpty reports whether one of the option's values is empty.
func (v *Values) HasEmpty(name string) bool { return slices.Contains(v.values[name], "") }

// Precedes reports whether option a is given before b on the command line.
func (v *Values) Precedes(a, b string) bool {
	i, k := slices.Index(v.order, a), slices.Index(v.order, b)
	return i >= 0 && i < k
}

// List returns the elements of the last value of the option, which is a list with
// commas. It drops empty elements.
func (v *Values) List(name string) []string { return splitList(v.Get(name)) }

// All returns the elements of all values of the option, split as List does.
func (v *Values) All(name string) []string { return splitList(v.Joined(name)) }

// Given returns the elements of all values that the option has on the command line, split as
// List does.
func (v *Values) Given(name string) []string { return splitList(v.JoinedGiven(name)) }

// JoinedGiven returns all values that the option has on the command line, separated by commas.
func (v *Values) JoinedGiven(name string) string {
	all, variables := v.values[name], len(v.values[name])
	for _, n := range v.order {
		if n == name {
			variables--
		}
	}
	return strings.Join(all[variables:], ",")
}

// Joined returns all values of the option, separated by commas.
func (v *Values) Joined(name string) string { return strings.Join(v.values[name], ",") }

func splitList(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}

// RequestedText returns the text that --help, --usage or --version print; ok is
// false if none of them was given.
func (c *CommandOptions) RequestedText(v *Values) (text string, ok bool) {
	switch {
	case v.Has("help"):
		return c.Help(), true
	case v.Has("usage"):
		return c.Usage(), true
	case v.Has("version"):
		return "slurm " + build.Slurm + "\n", true
	}
	return "", false
}

// ParseAndReport parses the command line like Parse. It prints the text of --help,
// --usage or --version, returns an error for the first refused option, and passes
// warnings to warn, with the command's name in front. If values and error are both
// nil, the command has nothing more to do.
func (c *CommandOptions) ParseAndReport(args []string, lookup func(string) (string, bool),
	output func(string) error, warn func(string)) (values *Values, operands []string, err error) {
	v, operands, err := c.Parse(args, lookup)
	if err != nil {
		return nil, nil, err
	}
	if text, ok := c.RequestedText(v); ok {
		return nil, nil, output(text)
	}
	if err := c.Refused(v); err != nil {
		return nil, nil, err
	}
	for _, w := range c.Warnings(v) {
		warn(c.Name + ": " + w)
	}
	return v, operands, nil
}

// Parse parses the input variables and the command line. Errors are in getopt's
// words and carry exit code 1, that of these commands, not 255.
func (c *CommandOptions) Parse(args []string, lookup func(string) (string, bool)) (*Values, []string, error) {
	v := &Values{values: map[string][]string{}, last: map[string]string{}}
	var wrong error
	list := c.List()
	for _, o := range list {
		if o.Env == "" {
			continue
		}
		if text, ok := lookup(o.Env); ok {
			v.values[o.Name] = append(v.values[o.Name], text)
			if check := c.checks[o.Env]; check != nil && wrong == nil {
				wrong = check(text)
			}
		}
	}
	g := grammar{options: list, interspersed: c.Interspersed}
	occurrences, operands, err := g.parse(args)
	for _, o := range occurrences {
		v.add(o.option.Name, o.value)
		if o.hasValue {
			v.last[o.option.Name] = o.value
		}
	}
	if wrong = cmp.Or(wrong, c.check(occurrences)); wrong != nil {
		return v, nil, wrong
	}
	var e *slurmerr.Error
	if errors.As(err, &e) {
		e.Code = 1
		if c.Terse && e.Kind == slurmerr.Usage {
			e.Kind, e.Message, e.Before = slurmerr.Refused, "", append(e.Before, c.Name+": "+e.Message)
		}
	}
	return v, operands, err
}

// check returns the error for the first wrong value; --help and the like end the command
// before the values behind them.
func (c *CommandOptions) check(occurrences []occurrence) error {
	for _, o := range occurrences {
		switch o.option.Name {
		case "help", "usage", "version":
			return nil
		}
		if check := c.checks[o.option.Name]; check != nil && (o.hasValue || o.option.Arg != OptionalArg) {
			if err := check(o.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Refused returns an error for the first given option that Berth refuses, or nil.
func (c *CommandOptions) Refused(v *Values) error {
	for _, o := range c.List() {
		if o.Status == Refused && v.Has(o.Name) {
			name := "--" + o.Name
			if o.LetterOnly {
				name = "-" + string(rune(o.Short))
			}
			return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: %s", name, o.Reason)
		}
	}
	return nil
}

// Warnings returns one line for each given option that has no effect.
func (c *CommandOptions) Warnings(v *Values) []string {
	var list []string
	for _, o := range c.List() {
		if o.Status == Warned && v.Has(o.Name) {
			list = append(list, "--"+o.Name+" has no effect: "+o.Reason)
		}
	}
	return list
}

// common returns the options that every command has.
func common() []*Option {
	return []*Option{
		{Name: "verbose", Short: 'v', Help: "increase verbosity"},
		{Name: "version", Short: 'V', Help: "print the version"},
		{Name: "help", Help: "print this help"},
		{Name: "usage", Help: "print a short usage message"},
	}
}

// verboseBy returns the common options, with an input variable for --verbose.
func verboseBy(env string) []*Option {
	out := common()
	out[0].Env = env
	return out
}

// commonShort returns the common options, with letters for --help and --usage; 0
// means no letter.
func commonShort(help, usage byte) []*Option {
	out := common()
	out[2].Short, out[3].Short = help, usage
	return out
}
