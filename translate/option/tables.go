package option

import "strings"

// allSets are the tables of the commands that have one of their own.
func allSets() []*Set {
	return []*Set{Sacct, Sacctmgr, Sattach, Sbcast, Scancel, Scontrol, Scrontab, Sdiag, Seff, Sinfo, Sprio, Squeue, Sview, Sreport, Sshare, Sstat, Strigger}
}

// Of lists the options of the command called name, in the order of its help
// text; nil: no such command. interspersed: options may stand behind other
// words. Callers must not change the list.
func Of(name string) (list []*Option, interspersed bool) {
	for _, c := range []Command{Sbatch, Srun, Salloc} {
		if c.String() != name {
			continue
		}
		for g := range groupCount {
			for _, o := range table {
				if o.Group == g && o.In&c != 0 {
					list = append(list, o)
				}
			}
		}
		return list, false
	}
	for _, s := range allSets() {
		if s.Name == name {
			return s.Options, s.Interspersed
		}
	}
	return nil, false
}

// StatusIn is what becomes of o in the command called name, and why.
func (o *Option) StatusIn(name string) (Status, string) {
	for _, c := range []Command{Sbatch, Srun, Salloc} {
		if c.String() == name {
			return o.For(c)
		}
	}
	return o.Status, o.Reason
}

// SynopsisOf is what follows the name of the command called name.
func SynopsisOf(name string) string {
	for _, c := range []Command{Sbatch, Srun, Salloc} {
		if c.String() == name {
			_, rest, _ := strings.Cut(synopsis(c), " ")
			return rest
		}
	}
	for _, s := range allSets() {
		if s.Name == name {
			return strings.TrimSpace("[OPTIONS] " + s.Args)
		}
	}
	return ""
}

// GroupTitle is the section of the help text that o stands in; empty for
// options of commands whose help text has none.
func (o *Option) GroupTitle() string {
	if o.In == 0 {
		return ""
	}
	return groupTitles[o.Group]
}

// VariablesIn are the input variables of o in the command called name.
func (o *Option) VariablesIn(name string) []string {
	for _, c := range []Command{Sbatch, Srun, Salloc} {
		if c.String() == name {
			return o.EnvNames(c)
		}
	}
	if o.Env == "" {
		return nil
	}
	return []string{o.Env}
}
