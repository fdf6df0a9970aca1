package option

import "strings"

// ClustersIn returns the clusters (-M) that the command line of the named command names; nil:
// it names none, or cannot be parsed. operands are its operands.
func ClustersIn(name string, args []string) (clusters, operands []string) {
	list, interspersed := Of(name)
	g := grammar{options: list, interspersed: interspersed}
	occurrences, operands, err := g.parse(args)
	if err != nil {
		return nil, nil
	}
	for _, o := range occurrences {
		if o.option.Short == 'M' && strings.HasPrefix(o.option.Name, "cluster") {
			clusters = strings.FieldsFunc(o.value, func(r rune) bool { return r == ',' })
		}
	}
	return clusters, operands
}
