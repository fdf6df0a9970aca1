package option

import (
	"cmp"
	"fmt"
	"strings"
)

// Help returns the text of --help.
func (c *CommandOptions) Help() string {
	var b strings.Builder
	b.WriteString(cmp.Or(c.Opening, strings.TrimSpace("Usage: "+c.Name+" [OPTIONS] "+c.Args)) + "\n")
	var last []*Option // --help and --usage, which have a section of their own
	for _, o := range c.List() {
		if c.Opening == "" && (o.Name == "help" || o.Name == "usage") {
			last = append(last, o)
			continue
		}
		c.writeHelpLine(&b, o)
	}
	for i, o := range last {
		if i == 0 {
			b.WriteString("\nHelp options:\n")
		}
		c.writeHelpLine(&b, o)
	}
	c.writeVerbs(&b)
	return b.String()
}

// writeVerbs writes the commands of scontrol and sacctmgr.
func (c *CommandOptions) writeVerbs(b *strings.Builder) {
	verbs := VerbsOf(c.Name)
	if verbs == nil {
		return
	}
	b.WriteString("\n    Valid <COMMAND> values are:\n")
	for _, v := range verbs {
		fmt.Fprintf(b, "     %-37s %s\n", v.Usage, v.Help)
	}
}

// writeHelpLine writes the names and the purpose of one option.
func (c *CommandOptions) writeHelpLine(b *strings.Builder, o *Option) {
	left := "      "
	if o.Short != 0 {
		left = fmt.Sprintf("  -%c, ", o.Short)
	}
	if c.Opening != "" {
		left = "     "
		if o.LetterOnly {
			left += fmt.Sprintf("-%c", o.Short)
			fmt.Fprintf(b, "%-34s %s\n", left+o.argument(" ")+c.Colon, o.help())
			return
		}
		if o.Short != 0 {
			left += fmt.Sprintf("-%c%s", o.Short, cmp.Or(c.Joint, ", "))
		}
	}
	if o.LetterOnly {
		fmt.Fprintf(b, "%-34s %s\n", fmt.Sprintf("  -%c", o.Short)+o.argument(" ")+c.Colon, o.help())
		return
	}
	fmt.Fprintf(b, "%-34s %s\n", left+"--"+o.Name+o.argument("=")+c.Colon, o.help())
}

// argument returns the option's value as help texts show it. sep stands between
// the name and a required value.
func (o *Option) argument(sep string) string {
	switch o.Arg {
	case RequiredArg:
		return sep + o.Meta
	case OptionalArg:
		return "[=" + o.Meta + "]"
	}
	return ""
}

// help returns the option's help line, with a note if the option has no effect.
func (o *Option) help() string {
	switch o.Status {
	case Refused:
		return o.Help + " (not possible here: " + o.Reason + ")"
	case Warned:
		return o.Help + " (no effect: " + o.Reason + ")"
	}
	return o.Help
}

// Usage returns the text of --usage: every option in one paragraph.
func (c *CommandOptions) Usage() string {
	var words []string
	for _, o := range c.List() {
		if o.Status == Refused {
			continue
		}
		name := "--" + o.Name + o.usageArgument("=")
		if o.Short != 0 && o.Arg != OptionalArg {
			name = "-" + string(rune(o.Short)) + o.usageArgument(" ")
		}
		words = append(words, "["+name+"]")
	}
	if c.Args != "" {
		words = append(words, c.Args)
	}
	return fold("Usage: "+c.Name, words)
}

// usageWords are the values in --usage that are called otherwise there than in the help text.
var usageWords = map[string]string{
	"account": "account", "accounts": "account", "jobs": "jobid", "partition": "partition", "steps": "step_id",
	"user": "user_name", "qos": "qos", "reservation": "reservation", "nodes": "nnodes", "ntasks": "ntasks",
	"cpus-per-task": "ncpus", "chdir": "path", "output": "out", "error": "err", "input": "in", "time": "minutes",
	"distribution": "dist", "constraint": "list", "mem": "MB", "mem-per-cpu": "MB", "mem-per-gpu": "MB", "tmp": "MB",
	"sort": "fields", "nodelist": "hosts", "exclude": "hosts", "job-name": "jobname", "clusters": "names",
	"signal": "[B:]sig[@seconds]", "units": "KMGTP",
}

// usageArgument returns the option's value as --usage shows it, in small letters.
func (o *Option) usageArgument(sep string) string {
	word := cmp.Or(usageWords[o.Name], strings.ToLower(o.Meta))
	switch o.Arg {
	case RequiredArg:
		return sep + word
	case OptionalArg:
		return "[=" + word + "]"
	}
	return ""
}

// fold returns the heading and the words, in lines of at most 78 columns that
// are indented to the width of the heading.
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
