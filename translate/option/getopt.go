package option

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// occurrence is one option on a command line, in a directive or in a variable.
type occurrence struct {
	option *Option
	value  string
	// hasValue is false for an option without a value, or whose optional value
	// is missing.
	hasValue bool
}

// grammar is what getopt needs to know about the command line of a command.
type grammar struct {
	options []*Option
	// interspersed: options may follow other words, as getopt_long permutes
	// them. Otherwise they end at the first word that is not an option.
	interspersed bool
	// sorted: the possibilities of an ambiguous abbreviation are listed in
	// alphabetical order, not in that of options.
	sorted bool
}

// parse splits a command line as getopt_long does: options end at "--" or, unless
// they are interspersed, at the first word that is not an option. Long names may
// be abbreviated as long as they are unambiguous. Errors are in getopt's words;
// occurrences then holds the options before the wrong one.
func (g *grammar) parse(args []string) (occurrences []occurrence, operands []string, err error) {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			return occurrences, append(operands, args[1:]...), nil
		case len(word) > 1 && word[0] == '-':
			var more []occurrence
			more, args, err = g.parseOption(args)
			if occurrences = append(occurrences, more...); err != nil {
				return occurrences, nil, err
			}
		case !g.interspersed:
			return occurrences, args, nil
		default:
			operands, args = append(operands, word), args[1:]
		}
	}
	return occurrences, operands, nil
}

// parseOption parses the option, or the word of letters, at the beginning of args, and returns
// the words that follow it and its value.
func (g *grammar) parseOption(args []string) ([]occurrence, []string, error) {
	if !strings.HasPrefix(args[0], "--") {
		return g.parseShort(args)
	}
	o, args, err := g.parseLong(args)
	if err != nil {
		return nil, nil, err
	}
	return []occurrence{o}, args, nil
}

// parseLong parses --name, --name=value or --name value at the beginning of args, and
// returns the words that follow.
func (g *grammar) parseLong(args []string) (occurrence, []string, error) {
	name, value, hasValue := strings.Cut(args[0][2:], "=")
	o, err := g.match(name, args[0])
	if err != nil {
		return occurrence{}, nil, err
	}
	args = args[1:]
	switch {
	case o.Arg == NoArg && hasValue:
		return occurrence{}, nil, usageError("option '--%s' doesn't allow an argument", o.fullName(name))
	case o.Arg == RequiredArg && !hasValue:
		if len(args) == 0 {
			return occurrence{}, nil, usageError("option '--%s' requires an argument", o.fullName(name))
		}
		return occurrence{o, args[0], true}, args[1:], nil
	}
	return occurrence{o, value, hasValue}, args, nil
}

// match returns the option with the given long name or unambiguous abbreviation.
// word is the whole word of the command line, for errors. Several names of one
// option do not make an abbreviation ambiguous, and neither do options that are
// newer than Slurm 22.05.
func (g *grammar) match(name, word string) (*Option, error) {
	for _, o := range g.options {
		if name != "" && slices.Contains(o.names(), name) {
			return o, nil
		}
	}
	options, names := g.abbreviated(name, func(o *Option) bool { return o.Since == "" })
	if len(options) == 0 {
		options, names = g.abbreviated(name, func(o *Option) bool { return o.Since != "" })
	}
	switch len(options) {
	case 0:
		return nil, usageError("unrecognized option '%s'", word)
	case 1:
		return options[0], nil
	}
	if g.sorted {
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })
	}
	first := names[0]
	for _, o := range options { // the C library does not list another name of the first one
		if all := o.names(); slices.Contains(all, first) {
			names = slices.DeleteFunc(names, func(n string) bool { return n != first && slices.Contains(all, n) })
			break
		}
	}
	return nil, usageError("option '%s' is ambiguous; possibilities: '--%s'", word, strings.Join(names, "' '--"))
}

// abbreviated returns the eligible options that have a long name with the given
// prefix, and those names.
func (g *grammar) abbreviated(prefix string, eligible func(*Option) bool) (options []*Option, names []string) {
	for _, o := range g.options {
		if !eligible(o) {
			continue
		}
		for _, n := range o.names() {
			if n == "" || !strings.HasPrefix(n, prefix) {
				continue
			}
			names = append(names, n)
			if !slices.Contains(options, o) {
				options = append(options, o)
			}
		}
	}
	return options, names
}

// tableKeys are the keys of the names that are not at their alphabetical place in Slurm's
// table.
var tableKeys = map[string]string{
	"bb": "bell+", "bbf": "bell+f", "cluster-constraint": "c", "constraint": "contiguous+", "cpu_bind": "cpu-bind+",
	"threads": "t", "usage": "version+",
}

// sortKey orders names as Slurm's table does: alphabetically, with some exceptions.
func sortKey(name string) string { return cmp.Or(tableKeys[name], name) }

// names returns the long name and the aliases of o.
func (o *Option) names() []string {
	if o.LetterOnly {
		return o.Aliases
	}
	return append([]string{o.Name}, o.Aliases...)
}

// fullName returns the name or alias of o that has the given prefix.
func (o *Option) fullName(prefix string) string {
	for _, n := range o.names() {
		if strings.HasPrefix(n, prefix) {
			return n
		}
	}
	return o.Name
}

// parseShort parses the word of letters at the beginning of args, such as -vN2, and
// returns the words that follow it and its value.
func (g *grammar) parseShort(args []string) ([]occurrence, []string, error) {
	var occurrences []occurrence
	letters := args[0][1:]
	args = args[1:]
	for letters != "" {
		letter := letters[0]
		letters = letters[1:]
		o := g.byLetter(letter)
		switch {
		case o == nil:
			return occurrences, nil, usageError("invalid option -- '%s'", string([]byte{letter}))
		case o.Arg == NoArg:
			occurrences = append(occurrences, occurrence{option: o})
		case letters != "":
			return append(occurrences, occurrence{o, letters, true}), args, nil
		case o.Arg == OptionalArg:
			occurrences = append(occurrences, occurrence{option: o})
		case len(args) == 0:
			return occurrences, nil, usageError("option requires an argument -- '%c'", rune(letter))
		default:
			return append(occurrences, occurrence{o, args[0], true}), args[1:], nil
		}
	}
	return occurrences, args, nil
}

// byLetter returns the option with the given short name, or nil.
func (g *grammar) byLetter(letter byte) *Option {
	for _, o := range g.options {
		if o.Short == letter {
			return o
		}
	}
	return nil
}

func usageError(format string, args ...any) error {
	return slurmerr.Newf(slurmerr.Usage, format, args...)
}
