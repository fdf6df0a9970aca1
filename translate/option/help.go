package option

import (
	"fmt"
	"slices"
	"strings"
)

// section is a part of the help text.
type section uint8

const (
	sectionRun section = iota
	sectionConstraints
	sectionConsumable
	sectionAffinity
	sectionGPU
	sectionContainer
	sectionHelp
	sectionOther
	sectionCount
)

// sectionTitles are the headings of the help text; those of Slurm but for containers.
var sectionTitles = [sectionCount]string{
	"Parallel run options", "Constraint options", "Consumable resources related options",
	"Affinity/Multi-core options", "GPU scheduling options", "Container options", "Help options", "Other options",
}

// sections has the options that are not among those of parallel runs.
var sections = map[string]section{
	"cluster-constraint": sectionConstraints, "contiguous": sectionConstraints, "constraint": sectionConstraints,
	"nodefile": sectionConstraints, "mem": sectionConstraints, "mincpus": sectionConstraints,
	"reservation": sectionConstraints, "tmp": sectionConstraints, "nodelist": sectionConstraints,
	"exclude": sectionConstraints, "prefer": sectionConstraints,
	"exact": sectionConsumable, "exclusive": sectionConsumable, "mem-per-cpu": sectionConsumable,
	"resv-ports":       sectionConsumable,
	"sockets-per-node": sectionAffinity, "cores-per-socket": sectionAffinity, "threads-per-core": sectionAffinity,
	"extra-node-info": sectionAffinity, "ntasks-per-core": sectionAffinity, "ntasks-per-socket": sectionAffinity,
	"cpu-bind": sectionAffinity, "mem-bind": sectionAffinity, "hint": sectionAffinity,
	"cpus-per-gpu": sectionGPU, "gpus": sectionGPU, "gpu-bind": sectionGPU, "gpu-freq": sectionGPU,
	"gpus-per-node": sectionGPU, "gpus-per-socket": sectionGPU, "gpus-per-task": sectionGPU,
	"mem-per-gpu": sectionGPU, "ntasks-per-gpu": sectionGPU,
	"help": sectionHelp, "usage": sectionHelp, "version": sectionOther,
}

// sectionOf returns the section that lists o.
func sectionOf(o *Option) section {
	if o.Group == GroupContainer {
		return sectionContainer
	}
	return sections[o.Name]
}

// Help returns the text of --help of command c. The options of a section are in the order
// of their letters, or of their names if they have none.
func Help(c Command) string {
	var in [sectionCount][]*Option
	for _, o := range table() {
		if o.In&c != 0 {
			in[sectionOf(o)] = append(in[sectionOf(o)], o)
		}
	}
	var b strings.Builder
	b.WriteString("Usage: " + synopsis(c) + "\n")
	for s, list := range in {
		if len(list) == 0 {
			continue
		}
		b.WriteString("\n" + sectionTitles[s] + ":\n")
		slices.SortStableFunc(list, func(x, y *Option) int { return strings.Compare(x.sortKey(), y.sortKey()) })
		for _, o := range list {
			writeHelpLine(&b, c, o)
		}
	}
	return b.String()
}

// sortKey returns the letter of o, a small one before the capital, or its name.
func (o *Option) sortKey() string {
	if o.Short == 0 {
		return o.Name
	}
	key := strings.ToLower(string(rune(o.Short)))
	if key != string(rune(o.Short)) {
		key += "\x01"
	}
	return key
}

func synopsis(c Command) string {
	switch c {
	case Sbatch:
		return "sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]"
	case Srun:
		return "srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) [args(N)...]"
	}
	return "salloc [OPTIONS(0)...] [ : [OPTIONS(N)]] [command(0) [args(0)...]]"
}

// operands returns what follows the options in --usage.
func operands(c Command) string {
	if c == Salloc {
		return "[command [args...]]"
	}
	return "executable [args...]"
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
	for _, o := range table() {
		status, _ := o.For(c)
		if o.In&c == 0 || status == Refused {
			continue
		}
		word := " [--" + o.Name + o.usageArgument("=") + "]"
		if o.Short != 0 && o.Arg != OptionalArg {
			word = " [-" + string(rune(o.Short)) + o.usageArgument(" ") + "]"
		}
		if width+len(word) > 79 {
			b.WriteString("\n" + indent)
			width = len(indent)
		}
		b.WriteString(word)
		width += len(word)
	}
	b.WriteString("\n" + indent + " " + operands(c) + "\n")
	return b.String()
}
