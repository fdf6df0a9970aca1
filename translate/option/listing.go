package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/slurmerr"
)

// Set is the options of a command that lists or operates (squeue, sinfo,
// scancel, scontrol). They describe no job, and their letters mean other things
// than sbatch's, so each command has a table of its own.
type Set struct {
	Name    string // of the command
	Args    string // what follows the options, in the help text
	Options []*Option
	// Interspersed: options may follow other words, as getopt_long permutes
	// them; else they end at the first word that is none.
	Interspersed bool
	// Terse: an option that it does not have is refused without a word about
	// --help.
	Terse bool
}

// Values are the options that were given, by long name.
type Values struct {
	values map[string][]string
	order  []string // names in the order of the command line
}

func (v *Values) add(name, text string) {
	v.values[name] = append(v.values[name], text)
	v.order = append(v.order, name)
}

// Last is which of the options was given last; empty: none.
func (v *Values) Last(names ...string) string {
	for _, name := range slices.Backward(v.order) {
		if slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// Has tells whether the option was given.
func (v *Values) Has(name string) bool { return len(v.values[name]) > 0 }

// Count is how often the option was given.
func (v *Values) Count(name string) int { return len(v.values[name]) }

// Get is the last value given for the option, empty if there is none.
func (v *Values) Get(name string) string {
	all := v.values[name]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// List is the last value of the option, split at commas, without empty parts.
func (v *Values) List(name string) []string {
	return slices.DeleteFunc(strings.Split(v.Get(name), ","), func(s string) bool { return s == "" })
}

// All are all values of the option, split as List does.
func (v *Values) All(name string) (all []string) {
	for _, text := range v.values[name] {
		all = append(all, strings.Split(text, ",")...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Answer is the text for --help, --usage or --version; asked: one was given.
func (s *Set) Answer(v *Values) (text string, asked bool) {
	switch {
	case v.Has("help"):
		return s.Help(), true
	case v.Has("usage"):
		return s.Usage(), true
	case v.Has("version"):
		return "slurm " + build.Slurm + "\n", true
	}
	return "", false
}

// Begin is how a command with this table begins: Parse, then what is answered
// at once (by tell), refused, or only warned about (by warn, behind the
// command's name). Without values and error there is nothing more to do.
func (s *Set) Begin(args []string, lookup func(string) (string, bool), tell func(string) error, warn func(string)) (*Values, []string, error) {
	v, rest, err := s.Parse(args, lookup)
	if err != nil {
		return nil, nil, err
	}
	if text, asked := s.Answer(v); asked {
		return nil, nil, tell(text)
	}
	if err := s.Refused(v); err != nil {
		return nil, nil, err
	}
	for _, w := range s.Warnings(v) {
		warn(s.Name + ": " + w)
	}
	return v, rest, nil
}

// Parse reads the input variables and the command line. rest is what is no
// option. Errors are in getopt's words; these commands end with 1, not 255.
func (s *Set) Parse(args []string, lookup func(string) (string, bool)) (*Values, []string, error) {
	v := &Values{values: map[string][]string{}}
	for _, o := range s.Options {
		if o.Env == "" {
			continue
		}
		if text, ok := lookup(o.Env); ok {
			v.values[o.Name] = append(v.values[o.Name], text)
		}
	}
	rest, err := s.scan(args, v)
	var e *slurmerr.Error
	if errors.As(err, &e) {
		e.Code = 1
		if s.Terse && e.Kind == slurmerr.Usage {
			e.Kind, e.Message, e.Before = slurmerr.Refused, "", append(e.Before, s.Name+": "+e.Message)
		}
	}
	return v, rest, err
}

func (s *Set) scan(args []string, v *Values) (rest []string, err error) {
	for len(args) > 0 && err == nil {
		word := args[0]
		switch {
		case word == "--":
			return append(rest, args[1:]...), nil
		case strings.HasPrefix(word, "--"):
			args, err = s.long(args, v)
		case len(word) > 1 && word[0] == '-':
			args, err = s.short(args, v)
		case !s.Interspersed:
			return args, nil
		default:
			rest, args = append(rest, word), args[1:]
		}
	}
	return rest, err
}

func (s *Set) long(args []string, v *Values) ([]string, error) {
	name, val, has := strings.Cut(args[0][2:], "=")
	o, err := s.match(name, args[0])
	if err != nil {
		return nil, err
	}
	args = args[1:]
	switch {
	case o.Arg == NoArg && has:
		return nil, usage("option '--%s' doesn't allow an argument", spelled(o, name))
	case o.Arg == RequiredArg && !has && len(args) == 0:
		return nil, usage("option '--%s' requires an argument", spelled(o, name))
	case o.Arg == RequiredArg && !has:
		val, args = args[0], args[1:]
	}
	v.add(o.Name, val)
	return args, nil
}

// match finds the option that a long name or its unambiguous beginning means.
func (s *Set) match(name, word string) (*Option, error) {
	var found *Option
	var names []string
	several := false
	for _, o := range s.Options {
		for _, n := range o.names() {
			if n == "" || !strings.HasPrefix(n, name) {
				continue
			}
			if n == name {
				return o, nil
			}
			names = append(names, n)
			several = several || found != nil && found != o
			found = o
		}
	}
	if found == nil {
		return nil, usage("unrecognized option '%s'", word)
	}
	if several {
		return nil, usage("option '%s' is ambiguous; possibilities: '--%s'", word, strings.Join(names, "' '--"))
	}
	return found, nil
}

func (s *Set) short(args []string, v *Values) ([]string, error) {
	letters := args[0][1:]
	args = args[1:]
	for letters != "" {
		letter := letters[0]
		letters = letters[1:]
		o := s.letter(letter)
		switch {
		case o == nil:
			return nil, usage("invalid option -- '%s'", string([]byte{letter}))
		case o.Arg == NoArg:
			v.add(o.Name, "")
		case letters != "" || o.Arg == OptionalArg:
			v.add(o.Name, letters)
			return args, nil
		case len(args) == 0:
			return nil, usage("option requires an argument -- '%c'", rune(letter))
		default:
			v.add(o.Name, args[0])
			return args[1:], nil
		}
	}
	return args, nil
}

func (s *Set) letter(letter byte) *Option {
	for _, o := range s.Options {
		if o.Short == letter {
			return o
		}
	}
	return nil
}

// Refused is the error of the first option given that is refused here, or nil.
func (s *Set) Refused(v *Values) error {
	for _, o := range s.Options {
		if o.Status == Refused && v.Has(o.Name) {
			return slurmerr.Newf(slurmerr.Refused, "--%s is not possible here: %s", o.Name, o.Reason)
		}
	}
	return nil
}

// Help is the text of --help.
func (s *Set) Help() string {
	var b strings.Builder
	b.WriteString(s.usageLine() + "\n")
	for _, o := range s.Options {
		left := "      "
		if o.Short != 0 {
			left = fmt.Sprintf("  -%c, ", o.Short)
		}
		fmt.Fprintf(&b, "%-34s %s\n", left+"--"+o.Name+o.argument("="), o.help())
	}
	if verbs := VerbsOf(s.Name); verbs != nil {
		b.WriteString("\nCommands:\n")
		for _, v := range verbs {
			fmt.Fprintf(&b, "  %-40s %s\n", v.Usage, v.Help)
		}
	}
	return b.String()
}

// argument is how the help text shows the option's value.
func (o *Option) argument(sep string) string {
	switch o.Arg {
	case RequiredArg:
		return sep + o.Meta
	case OptionalArg:
		return "[=" + o.Meta + "]"
	}
	return ""
}

// help is the option's line, which says so where it does not do it.
func (o *Option) help() string {
	switch o.Status {
	case Refused:
		return o.Help + " (not possible here: " + o.Reason + ")"
	case Warned:
		return o.Help + " (no effect: " + o.Reason + ")"
	}
	return o.Help
}

func (s *Set) usageLine() string {
	return strings.TrimSpace(fmt.Sprintf("Usage: %s [OPTIONS] %s", s.Name, s.Args))
}

// Usage is the text of --usage: every option in one paragraph.
func (s *Set) Usage() string {
	var words []string
	for _, o := range s.Options {
		if o.Status == Refused {
			continue
		}
		name := "--" + o.Name + o.argument("=")
		if o.Short != 0 && o.Arg != OptionalArg {
			name = "-" + string(rune(o.Short)) + o.argument(" ")
		}
		words = append(words, "["+name+"]")
	}
	if s.Args != "" {
		words = append(words, s.Args)
	}
	return fold("Usage: "+s.Name, words)
}

// fold puts words into lines of at most 78 columns behind a heading.
func fold(heading string, words []string) string {
	var b strings.Builder
	b.WriteString(heading)
	column := len(heading)
	for _, w := range words {
		if column+1+len(w) > 78 {
			b.WriteString("\n" + strings.Repeat(" ", len(heading)))
			column = len(heading)
		}
		b.WriteString(" " + w)
		column += 1 + len(w)
	}
	return b.String() + "\n"
}

// Rows that every command has.
func common() []*Option {
	return []*Option{
		{Name: "verbose", Short: 'v', Help: "say more"},
		{Name: "version", Short: 'V', Help: "print the version"},
		{Name: "help", Help: "print this text"},
		{Name: "usage", Help: "print the options in short"},
	}
}

// verboseBy is common with a variable that stands for --verbose.
func verboseBy(env string) []*Option {
	out := common()
	out[0].Env = env
	return out
}

// commonShort is common with letters for --help and --usage, as some commands
// have them; 0: none.
func commonShort(help, usage byte) []*Option {
	out := common()
	out[2].Short, out[3].Short = help, usage
	return out
}

const noFederation = "there is no federation of clusters"
