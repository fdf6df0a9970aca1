// Package completion completes the word at the cursor of a command line: options and
// their values from the option tables, and objects of the cluster from lists that the
// caller provides. It also implements the quoting rules of shells. It is pure.
package completion

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/option"
)

// Item is one possible completion.
type Item struct {
	Text string `json:"t"`
	Help string `json:"h,omitempty"`
	// State is that of a job, by Slurm's name; Own: it belongs to the caller. Only
	// jobs have them.
	State string `json:"s,omitempty"`
	Own   bool   `json:"o,omitempty"`
}

// Request is a command line up to the cursor.
type Request struct {
	Name    string   // of the command
	Words   []string // between the name and the word at the cursor, without quotes
	Current string   // the word at the cursor up to the cursor, without quotes
}

// Lists returns the cluster's objects of a kind (option.Jobs and the kinds after it). It
// may be slow. Nil means that no objects are known.
type Lists func(option.Kind) []Item

// Fallback is a kind of completion that the shell provides.
type Fallback uint8

// The fallbacks.
const (
	Nothing     Fallback = iota
	Files                // names of files
	Directories          // names of directories
	Commands             // names of programs
	Command              // completion of the command at Answer.From
)

// Answer holds the possible completions.
type Answer struct {
	Items []Item // whole words, in the order to show them
	// List: a comma and more items may follow.
	List bool
	// Open: the word needs more text.
	Open bool
	// Describe: show the descriptions too, because the texts alone, such as job ids, say
	// little.
	Describe bool

	Fallback Fallback
	// Prefix is the part of the current word before the name that the fallback
	// completes: --output=
	Prefix string
	From   int // index of Request.Words; len(Words): the current word
}

// maxItems is the maximum number of items of an answer.
const maxItems = 1000

// Complete returns the completions of r.
func Complete(r Request, lists Lists) Answer {
	if lists == nil {
		lists = func(option.Kind) []Item { return nil }
	}
	c := &cursor{Request: r, lists: lists, given: map[*option.Option]bool{}}
	c.options, c.interspersed = option.Of(r.Name)
	if c.options == nil {
		return Answer{}
	}
	c.read()
	a := c.answer()
	if len(a.Items) > maxItems {
		a.Items = a.Items[:maxItems]
	}
	return a
}

// cursor is the state at the cursor.
type cursor struct {
	Request
	lists        Lists
	options      []*option.Option
	interspersed bool

	given        map[*option.Option]bool
	valueOf      *option.Option // the option whose value is the current word; nil: none
	operands     []string
	from         int  // index of the first operand
	optionsEnded bool // the following words are operands
}

// read parses the words before the cursor.
func (c *cursor) read() {
	for i, w := range c.Words {
		switch {
		case c.valueOf != nil:
			c.valueOf = nil
		case c.hasComponents() && w == ":":
			// The next component has its own options.
			c.operands, c.optionsEnded = nil, false
			clear(c.given)
		case c.optionsEnded:
			c.word(i, w)
		case w == "--":
			c.optionsEnded = true
			c.from = i + 1
		case strings.HasPrefix(w, "--"):
			c.long(w[2:])
		case len(w) > 1 && w[0] == '-':
			c.short(w[1:])
		default:
			c.word(i, w)
			c.optionsEnded = !c.interspersed
		}
	}
	if len(c.operands) == 0 {
		c.from = len(c.Words)
	}
}

// hasComponents reports whether a colon separates components on the command line.
func (c *cursor) hasComponents() bool {
	return c.Name == "srun" || c.Name == "salloc" || c.Name == "sbatch"
}

func (c *cursor) word(at int, w string) {
	if len(c.operands) == 0 {
		c.from = at
	}
	c.operands = append(c.operands, w)
}

func (c *cursor) long(word string) {
	name, _, has := strings.Cut(word, "=")
	if o := c.optionNamed(name); o != nil {
		c.given[o] = true
		if o.Arg == option.RequiredArg && !has {
			c.valueOf = o
		}
	}
}

// optionNamed returns the option with the given name or unambiguous abbreviation, or nil.
func (c *cursor) optionNamed(name string) *option.Option {
	var found *option.Option
	for _, o := range c.options {
		for _, n := range append([]string{o.Name}, o.Aliases...) {
			switch {
			case n == name:
				return o
			case strings.HasPrefix(n, name) && found != nil && found != o:
				return nil
			case strings.HasPrefix(n, name):
				found = o
			}
		}
	}
	return found
}

// short parses a word of letters. If one of them needs a value, o is its option and rest
// the text after it in the word; otherwise o is nil.
func (c *cursor) short(letters string) (o *option.Option, rest string) {
	for letters != "" {
		i := slices.IndexFunc(c.options, func(o *option.Option) bool { return o.Short == letters[0] })
		letters = letters[1:]
		if i < 0 {
			return nil, ""
		}
		o := c.options[i]
		c.given[o] = true
		switch {
		case o.Arg == option.NoArg:
			continue
		case letters == "" && o.Arg == option.RequiredArg:
			c.valueOf = o
		}
		return o, letters
	}
	return nil, ""
}

func (c *cursor) answer() Answer {
	cur := c.Current
	switch {
	case c.valueOf != nil:
		return c.value(option.DomainOf(c.Name, c.valueOf), "", cur)
	case c.optionsEnded || cur == "" || cur[0] != '-':
		return c.positional()
	case strings.HasPrefix(cur, "--"):
		name, text, has := strings.Cut(cur[2:], "=")
		if !has {
			return c.optionNames()
		}
		if o := c.optionNamed(name); o != nil && o.Arg != option.NoArg {
			return c.value(option.DomainOf(c.Name, o), "--"+name+"=", text)
		}
	case len(cur) == 1:
		return c.optionNames()
	default:
		if o, rest := c.short(cur[1:]); o != nil {
			return c.value(option.DomainOf(c.Name, o), cur[:len(cur)-len(rest)], rest)
		}
		return Answer{Items: []Item{{Text: cur}}}
	}
	return Answer{}
}

// optionNames returns the options that were not given yet. Aliases and refused options
// are included only if no other option matches.
func (c *cursor) optionNames() Answer {
	var first, second []Item
	for _, o := range c.options {
		status, reason := o.StatusIn(c.Name)
		if c.given[o] && o.Name != "verbose" {
			continue
		}
		help := o.Help
		switch status {
		case option.Refused:
			help += " (not possible here: " + reason + ")"
		case option.Warned:
			help += " (no effect: " + reason + ")"
		}
		for i, n := range append([]string{o.Name}, o.Aliases...) {
			for _, text := range forms(o, n) {
				if !strings.HasPrefix(text, c.Current) {
					continue
				}
				if item := (Item{Text: text, Help: help}); i > 0 || status == option.Refused {
					second = append(second, item)
				} else {
					first = append(first, item)
				}
			}
		}
		if o.Short != 0 && c.Current == "-" && status != option.Refused {
			first = append(first, Item{Text: "-" + string(rune(o.Short)), Help: help})
		}
	}
	if len(first) == 0 {
		first = second
	}
	return Answer{Items: first}
}

// forms returns the forms of a long name: with = if a value follows.
func forms(o *option.Option, name string) []string {
	switch o.Arg {
	case option.RequiredArg:
		return []string{"--" + name + "="}
	case option.OptionalArg:
		return []string{"--" + name, "--" + name + "="}
	}
	return []string{"--" + name}
}

// match returns item as a completion of typed; ok is false if it does not match. With
// fold the case is ignored, and typed letters keep their case.
func match(typed, item string, fold bool) (text string, ok bool) {
	if strings.HasPrefix(item, typed) {
		return item, true
	}
	if !fold || len(item) < len(typed) || !strings.EqualFold(item[:len(typed)], typed) {
		return "", false
	}
	rest := item[len(typed):]
	if strings.ToUpper(item) == item && strings.ToLower(typed) == typed {
		rest = strings.ToLower(rest)
	}
	return typed + rest, true
}

// isSafe reports whether the text can be passed to a shell. Names that users chose may
// contain control characters.
func isSafe(text string) bool { return text != "" && printable.Escape(text) == text }
