package main

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
)

// generator makes calls. The same seed makes the same calls.
type generator struct {
	r    *rand.Rand
	only []string // commands; empty: all
}

func newGenerator(seed uint64, only ...string) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, 0)), only: only}
}

// form is a way to call a command.
type form struct {
	command string
	weight  int
	build   func(*generator, string) *call
}

// forms are weighted by how much there is to compare.
var forms = []form{
	{"sbatch", 28, (*generator).submission}, {"sbatch", 8, (*generator).testOnly}, {"srun", 6, (*generator).testOnly},
	{"srun", 5, (*generator).refusedAllocation}, {"salloc", 5, (*generator).refusedAllocation},
	{"squeue", 10, (*generator).listing}, {"sinfo", 7, (*generator).listing}, {"sacct", 7, (*generator).listing},
	{"sprio", 2, (*generator).listing}, {"sshare", 1, (*generator).listing}, {"sstat", 1, (*generator).listing},
	{"sreport", 1, (*generator).sreport}, {"scontrol", 6, (*generator).scontrolShow},
	{"sacctmgr", 3, (*generator).sacctmgrShow}, {"scontrol", 8, (*generator).scontrolChange},
	{"scancel", 4, (*generator).scancel},
}

// next returns the next call.
func (g *generator) next() *call {
	total := 0
	for _, f := range forms {
		total += f.weight
	}
	for {
		n := g.r.IntN(total)
		for _, f := range forms {
			if n -= f.weight; n < 0 {
				if len(g.only) == 0 || slices.Contains(g.only, f.command) {
					return f.build(g, f.command)
				}
				break
			}
		}
	}
}

// skipped options wait, repeat, open a terminal, print texts that are Berth's own, or
// print figures that two systems cannot share.
var skipped = map[string]bool{
	"help": true, "usage": true, "version": true, "verbose": true, "iterate": true, "tui": true, "json": true,
	"yaml": true, "pty": true, "multi-prog": true, "debugger-test": true, "no-allocate": true, "get-user-env": true,
	"x11": true, "bcast": true, "test-only": true, "hold": true, "wrap": true, "prolog": true, "epilog": true,
	"helpformat": true, "sbatch wait": true, "input": true, "interactive": true, "export-file": true, "jobid": true,
	"sacct long": true, "sacct completion": true, "sacct file": true, "scancel interactive": true, "preserve-env": true,
	"sacct env-vars": true, "sacct batch-script": true, "network": true, "bbf": true, "container": true, "bb": true,
	"slurmd-debug": true, "sacct associations": true, "sacct allclusters": true,
	"quit-on-interrupt": true, "sacct constraints": true, "sbatch quiet": true,
}

// usable reports whether calls of the command may have option o.
func usable(command string, o *option.Option) bool {
	return o.Since == "" && !skipped[o.Name] && !skipped[command+" "+o.Name]
}

// usableOptions returns the options that calls of the command may have.
func usableOptions(command string) (table []*option.Option) {
	all, _ := option.Of(command)
	for _, o := range all {
		if usable(command, o) {
			table = append(table, o)
		}
	}
	return table
}

// options returns up to limit parts with options of the command, at least one.
func (g *generator) options(command string, limit int) []part {
	table := usableOptions(command)
	var parts []part
	for range 1 + g.r.IntN(limit) {
		o := table[g.r.IntN(len(table))]
		parts = append(parts, g.part(command, o))
		if g.r.IntN(20) == 0 {
			parts = append(parts, g.part(command, o))
		}
	}
	return parts
}

// part returns option o of the command, spelled in one of the ways that getopt knows, in
// the environment, or as a directive.
func (g *generator) part(command string, o *option.Option) part {
	p := part{name: o.Name}
	if o.Arg != option.NoArg {
		p.value = g.value(command, o)
	}
	names := environmentNames(command, o)
	switch n := g.r.IntN(10); {
	case n < 2 && len(names) > 0:
		p.place = inVariable
		p.words = []string{names[g.r.IntN(len(names))] + "=" + variableValue(o, p.value)}
		return p
	case n < 5 && command == "sbatch":
		p.place = inScript
	}
	p.words = g.spell(o, p.value, p.place == inScript)
	return p
}

// environmentNames returns the input variables of o.
func environmentNames(command string, o *option.Option) []string {
	for _, c := range []option.Command{option.Sbatch, option.Srun, option.Salloc} {
		if c.String() == command {
			return o.EnvNames(c)
		}
	}
	if o.Env == "" {
		return nil
	}
	return []string{o.Env}
}

// variableValue returns what turns an option on in the environment.
func variableValue(o *option.Option, v string) string {
	if o.Arg == option.NoArg {
		return "1"
	}
	return v
}

// spell returns the words of an option: its letter, its name, or an abbreviation.
func (g *generator) spell(o *option.Option, v string, inScript bool) []string {
	name := "--" + o.Name
	if n := g.r.IntN(12); n == 0 && len(o.Name) > 4 {
		name = "--" + o.Name[:3+g.r.IntN(len(o.Name)-3)]
	} else if n == 1 && len(o.Aliases) > 0 {
		name = "--" + o.Aliases[0]
	}
	letter := o.Short != 0 && g.r.IntN(3) == 0
	if inScript {
		v = quote(v)
	}
	switch {
	case o.Arg == option.NoArg && letter:
		return []string{"-" + string(o.Short)}
	case o.Arg == option.NoArg:
		return []string{name}
	case o.Arg == option.OptionalArg && g.r.IntN(3) == 0:
		return []string{name}
	case letter && v != "" && (o.Arg == option.OptionalArg || g.r.IntN(2) == 0):
		return []string{"-" + string(o.Short) + v}
	case letter && o.Arg == option.RequiredArg:
		return []string{"-" + string(o.Short), v}
	case o.Arg == option.RequiredArg && g.r.IntN(4) == 0:
		return []string{name, v}
	}
	return []string{name + "=" + v}
}

// value returns a value of o; those that name columns come from the tables of columns.
func (g *generator) value(command string, o *option.Option) string {
	switch command + " " + o.Name {
	case "squeue Format":
		return g.columns(columnNames(format.JobColumns()))
	case "sinfo Format":
		return g.columns(sinfoNames)
	case "sacct format":
		return g.columns(sacctNames())
	case "sshare format":
		return g.columns(option.SshareFields)
	case "sstat format":
		return g.columns([]string{"JobID", "MaxRSS", "NTasks", "AveCPU", "Pids", "Nodelist"})
	case "sreport time":
		return pick(g.r, grammar["time-unit"])
	}
	return value(g.r, command, o)
}

// columns returns a list of column names with commas, some with a width. One list in eight
// ends with a column that does not exist.
func (g *generator) columns(names []string) string {
	var list []string
	for range 1 + g.r.IntN(4) {
		n := names[g.r.IntN(len(names))]
		switch g.r.IntN(10) {
		case 0:
			n += ":5"
		case 1:
			n = strings.ToLower(n)
		case 2:
			n += []string{"%20", ":.12", "%-8", ":x", "%0", ":-30"}[g.r.IntN(6)]
		case 3:
			n = n[:1+g.r.IntN(len(n))]
		}
		list = append(list, n)
	}
	if g.r.IntN(8) == 0 {
		list = append(list, "nosuch")
	}
	return strings.Join(list, ",")
}

// submission returns an sbatch of a held job.
func (g *generator) submission(command string) *call {
	parts := append([]part{{words: []string{"-H"}, fixed: true}}, g.options(command, 5)...)
	return &call{kind: submit, command: command, parts: parts}
}

// testOnly returns a call that asks when a job would start.
func (g *generator) testOnly(command string) *call {
	limit := part{place: inVariable, words: []string{"SBATCH_TIMELIMIT=60"}, fixed: true}
	if command == "srun" {
		limit.words[0] = "SLURM_TIMELIMIT=60"
	}
	parts := append([]part{limit, {words: []string{"--test-only"}, fixed: true}}, g.options(command, 4)...)
	if command == "srun" {
		parts = append(parts, part{words: []string{"true"}, fixed: true})
	}
	return &call{kind: query, command: command, parts: parts}
}

// refusedAllocation returns an srun or salloc that fails after its options are checked: a
// held job cannot start immediately.
func (g *generator) refusedAllocation(command string) *call {
	parts := append([]part{{words: []string{"-H", "-I"}, fixed: true}}, g.options(command, 4)...)
	return &call{kind: allocation, command: command, parts: append(parts, part{words: []string{"true"}, fixed: true})}
}

// listing returns a call of a command that lists.
func (g *generator) listing(command string) *call {
	parts := g.options(command, 4)
	if command == "sacct" {
		parts = g.sacct(parts)
	}
	return &call{kind: query, command: command, parts: parts}
}

// sacct adds to the options what leaves jobs of earlier runs out.
func (g *generator) sacct(parts []part) []part {
	if g.r.IntN(2) == 0 {
		parts = append(parts, part{name: "-P", words: []string{"-P"}})
	}
	if g.r.IntN(2) == 0 {
		return append([]part{{words: []string{"-j", "{every}"}, fixed: true}}, parts...)
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.name == "starttime" || p.name == "endtime" })
	return append([]part{{words: []string{"-S", "{since}"}, fixed: true}}, parts...)
}

// scancel returns a scancel of a fresh job.
func (g *generator) scancel(command string) *call {
	parts := append(g.options(command, 3), part{words: []string{"{new}"}, fixed: true})
	return &call{kind: change, command: command, parts: parts}
}
