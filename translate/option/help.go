package option

import (
	"fmt"
	"strings"
)

// Help returns the text of --help of command c.
func Help(c Command) string {
	var b strings.Builder
	b.WriteString("Usage: " + synopsis(c) + "\n")
	for g := range groupCount {
		first := true
		for _, o := range table {
			if o.Group != g || o.In&c == 0 {
				continue
			}
			if first {
				b.WriteString("\n" + groupTitles[g] + ":\n")
				first = false
			}
			writeHelpLine(&b, c, o)
		}
	}
	return b.String()
}

func synopsis(c Command) string {
	switch c {
	case Sbatch:
		return "sbatch [OPTIONS] [SCRIPT [ARGUMENTS]]"
	case Srun:
		return "srun [OPTIONS] PROGRAM [ARGUMENTS]"
	}
	return c.String() + " [OPTIONS] [COMMAND [ARGUMENTS]]"
}

// writeHelpLine writes the help of one option: names and value, its purpose, and a
// note if it has no effect.
func writeHelpLine(b *strings.Builder, c Command, o *Option) {
	const column = 32
	names := "      --" + o.Name
	if o.Short != 0 {
		names = fmt.Sprintf("  -%c, --%s", o.Short, o.Name)
	}
	names += o.argument("=")
	text := o.Help
	switch status, reason := o.For(c); status {
	case Warned:
		text += " (no effect: " + reason + ")"
	case Refused:
		text += " (not possible: " + reason + ")"
	}
	if len(names) >= column-1 {
		b.WriteString(names + "\n" + strings.Repeat(" ", column) + text + "\n")
		return
	}
	fmt.Fprintf(b, "%-*s%s\n", column, names, text)
}

// Usage returns the text of --usage of command c.
func Usage(c Command) string {
	var b strings.Builder
	b.WriteString("Usage: " + c.String())
	width := b.Len()
	indent := strings.Repeat(" ", width)
	for _, o := range table {
		status, _ := o.For(c)
		if o.In&c == 0 || status == Refused {
			continue
		}
		word := " [--" + o.Name + o.argument("=") + "]"
		if width+len(word) > 79 {
			b.WriteString("\n" + indent)
			width = len(indent)
		}
		b.WriteString(word)
		width += len(word)
	}
	_, rest, _ := strings.Cut(synopsis(c), "] ")
	b.WriteString("\n" + indent + " " + rest + "\n")
	return b.String()
}
