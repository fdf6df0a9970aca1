package option

import "strings"

// ClustersRequest is what a command line says about clusters.
type ClustersRequest struct {
	Clusters []string // of -M; nil: there is none, or the command line cannot be parsed
	Operands []string
	// Iterates: the command repeats its list until it is interrupted (--iterate).
	Iterates bool
}

// ClustersIn returns what the command line of the named command says about clusters.
func ClustersIn(name string, args []string) (r ClustersRequest) {
	list, interspersed := Of(name)
	g := grammar{options: list, interspersed: interspersed}
	occurrences, operands, err := g.parse(args)
	if err != nil {
		return ClustersRequest{}
	}
	r.Operands = operands
	for _, o := range occurrences {
		switch {
		case o.option.Short == 'M' && strings.HasPrefix(o.option.Name, "cluster"):
			r.Clusters = strings.FieldsFunc(o.value, func(c rune) bool { return c == ',' })
		case o.option.Name == "iterate":
			r.Iterates = true
		}
	}
	return r
}
