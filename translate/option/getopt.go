package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// occurrence is one option on a command line.
type occurrence struct {
	option *Option
	value  string
	has    bool
}

// getopt splits a command line as getopt_long does with a leading plus: options
// stop at the first word that is none, or behind "--". Long names may be
// abbreviated as far as they stay unique. Errors are in getopt's words; with one,
// found is what stands before it.
func getopt(c Command, args []string) (found []occurrence, rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			return found, args[1:], nil
		case strings.HasPrefix(word, "--"):
			var o occurrence
			if o, args, err = longOption(c, args); err != nil {
				return found, nil, err
			}
			found = append(found, o)
		case len(word) > 1 && word[0] == '-':
			var more []occurrence
			more, args, err = shortOptions(c, args)
			if found = append(found, more...); err != nil {
				return found, nil, err
			}
		default:
			return found, args, nil
		}
	}
	return found, nil, nil
}

func longOption(c Command, args []string) (occurrence, []string, error) {
	name, val, has := strings.Cut(args[0][2:], "=")
	o, err := match(c, name, args[0])
	if err != nil {
		return occurrence{}, nil, err
	}
	args = args[1:]
	switch {
	case o.Arg == NoArg && has:
		return occurrence{}, nil, usage("option '--%s' doesn't allow an argument", spelled(o, name))
	case o.Arg == RequiredArg && !has:
		if len(args) == 0 {
			return occurrence{}, nil, usage("option '--%s' requires an argument", spelled(o, name))
		}
		return occurrence{o, args[0], true}, args[1:], nil
	}
	return occurrence{o, val, has}, args, nil
}

// match finds the option that name means: itself, or the only one that begins
// so. Names of one option do not make each other ambiguous, and neither do
// those that 22.05 has not.
func match(c Command, name, word string) (*Option, error) {
	if o := Lookup(c, name); o != nil {
		return o, nil
	}
	options, names := beginning(c, name, func(o *Option) bool { return o.Since == "" })
	if len(options) == 0 {
		options, names = beginning(c, name, func(o *Option) bool { return o.Since != "" })
	}
	switch len(options) {
	case 0:
		return nil, usage("unrecognized option '%s'", word)
	case 1:
		return options[0], nil
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return nil, usage("option '%s' is ambiguous; possibilities: '--%s'", word, strings.Join(names, "' '--"))
}

// beginning finds the options of c, among those that want says yes to, with a
// name that begins so.
func beginning(c Command, name string, want func(*Option) bool) (options []*Option, names []string) {
	for _, o := range table {
		if o.In&c == 0 || !want(o) {
			continue
		}
		for _, n := range o.names() {
			if strings.HasPrefix(n, name) {
				names = append(names, n)
				if !slices.Contains(options, o) {
					options = append(options, o)
				}
			}
		}
	}
	return options, names
}

// rank orders names as Slurm's table does: by the alphabet, but for one.
func rank(name string) string {
	if name == "constraint" {
		return "contiguous+"
	}
	return name
}

func (o *Option) names() []string {
	return append([]string{o.Name}, o.Aliases...)
}

// spelled is the whole name that an abbreviation stands for.
func spelled(o *Option, name string) string {
	for _, n := range o.names() {
		if strings.HasPrefix(n, name) {
			return n
		}
	}
	return o.Name
}

// shortOptions reads one word of letters such as -vN2.
func shortOptions(c Command, args []string) ([]occurrence, []string, error) {
	var found []occurrence
	letters := args[0][1:]
	args = args[1:]
	for letters != "" {
		letter := letters[0]
		letters = letters[1:]
		o := byLetter(c, letter)
		switch {
		case o == nil:
			return found, nil, usage("invalid option -- '%s'", string([]byte{letter}))
		case o.Arg == NoArg:
			found = append(found, occurrence{option: o})
		case letters != "":
			return append(found, occurrence{o, letters, true}), args, nil
		case o.Arg == OptionalArg:
			found = append(found, occurrence{option: o})
		case len(args) == 0:
			return found, nil, usage("option requires an argument -- '%c'", rune(letter))
		default:
			return append(found, occurrence{o, args[0], true}), args[1:], nil
		}
	}
	return found, args, nil
}

func byLetter(c Command, letter byte) *Option {
	for _, o := range table {
		if o.Short == letter && o.In&c != 0 {
			return o
		}
	}
	return nil
}

func usage(format string, args ...any) error {
	return slurmerr.Newf(slurmerr.Usage, format, args...)
}
