package option

import (
	"slices"
	"strings"
)

// ClustersRequest is what a command line says about clusters.
type ClustersRequest struct {
	Clusters []string // nil: none are named, or the command line cannot be parsed
	Operands []string
	// Federation: the command is for all clusters of the federation (--federation), and none is
	// named.
	Federation bool
	// Iterates: the command repeats its list until it is interrupted (--iterate).
	Iterates bool
	// Prints: the command only prints a text, which is the same for all clusters (--help).
	Prints bool
}

// ClustersIn returns what the command line of the named command, or else its variable, says about
// clusters.
func ClustersIn(name string, args []string, lookup func(string) (string, bool)) (r ClustersRequest) {
	list, interspersed := Of(name)
	submits, _ := commandByName(name)
	split := func(text string) []string { return strings.FieldsFunc(text, func(c rune) bool { return c == ',' }) }
	local := false
	for _, o := range list {
		if value, set := lookup(o.Env); set && o.Env != "" && value != "" {
			r.Federation = r.Federation || o.Name == "federation" || o.Name == "sibling"
			local = local || o.Name == "local"
		}
		if !o.isClusters() {
			continue
		}
		for _, variable := range append(o.EnvFull[submits], o.Env) { // the last one counts
			if text, ok := lookup(variable); ok && variable != "" {
				r.Clusters = split(text)
			}
		}
	}
	g := grammar{options: list, interspersed: interspersed}
	occurrences, operands, err := g.parse(args)
	if err != nil {
		return ClustersRequest{}
	}
	r.Operands = operands
	for _, o := range occurrences {
		switch {
		case o.option.isClusters():
			r.Clusters = split(o.value)
		case o.option.Name == "federation", o.option.Name == "sibling":
			r.Federation = true
		case o.option.Name == "local":
			local = true
		case o.option.Name == "iterate":
			r.Iterates = true
		case slices.Contains(printing, o.option.Name):
			r.Prints = true
		}
	}
	r.Federation = r.Federation && !local && len(r.Clusters) == 0
	return r
}

// printing are the options that only print a text.
var printing = []string{"help", "usage", "version"}

// isClusters reports whether the option is -M.
func (o *Option) isClusters() bool { return o.Short == 'M' && strings.HasPrefix(o.Name, "cluster") }
