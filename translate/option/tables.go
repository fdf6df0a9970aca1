package option

import "strings"

// submitCommands are the commands that share Table.
var submitCommands = []Command{Sbatch, Srun, Salloc}

// commandByName returns the command of submitCommands with the given name.
func commandByName(name string) (c Command, ok bool) {
	for _, c := range submitCommands {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// allCommandOptions returns the tables of the other commands.
func allCommandOptions() []*CommandOptions {
	return []*CommandOptions{
		Sacct,
		Sacctmgr,
		Sattach,
		Sbcast,
		Scancel,
		Scontrol,
		Scrontab,
		Sdiag,
		Seff,
		Sinfo,
		Slurmrestd,
		Sprio,
		Squeue,
		Sview,
		Sreport,
		Sshare,
		Sstat,
		Strigger,
	}
}

// Of returns the options of the named command in the order of its help text, or
// nil if there is no such command. interspersed reports whether options may follow
// operands. Callers must not change the list.
func Of(name string) (list []*Option, interspersed bool) {
	if c, ok := commandByName(name); ok {
		for g := range groupCount {
			for _, o := range Table() {
				if o.Group == g && o.In&c != 0 {
					list = append(list, o)
				}
			}
		}
		return list, false
	}
	for _, s := range allCommandOptions() {
		if s.Name == name {
			return s.List(), s.Interspersed
		}
	}
	return nil, false
}

// StatusIn returns the status of o in the named command, and the reason for it.
func (o *Option) StatusIn(name string) (Status, string) {
	if c, ok := commandByName(name); ok {
		return o.For(c)
	}
	return o.Status, o.Reason
}

// SynopsisOf returns the synopsis of the named command without its name.
func SynopsisOf(name string) string {
	if c, ok := commandByName(name); ok {
		_, rest, _ := strings.Cut(synopsis(c), " ")
		return rest
	}
	for _, s := range allCommandOptions() {
		if s.Name == name {
			return strings.TrimSpace("[OPTIONS] " + s.Args)
		}
	}
	return ""
}

// GroupTitle returns the section of the help text that lists o, or "" for options
// of commands whose help text has no sections.
func (o *Option) GroupTitle() string {
	if o.In == 0 {
		return ""
	}
	return groupTitles[o.Group]
}

// VariablesIn returns the input variables of o in the named command.
func (o *Option) VariablesIn(name string) []string {
	if c, ok := commandByName(name); ok {
		return o.EnvNames(c)
	}
	if o.Env == "" {
		return nil
	}
	return []string{o.Env}
}
