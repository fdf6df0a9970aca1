package stdio

import (
	"slices"
	"strings"
)

// Unknown returns those of names that this host does not have in a database of its name
// service, "passwd" or "group". They may be numbers. Without Getent it returns all of them.
func (p *Process) Unknown(database string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if p.Getent == nil || name == "" || strings.HasPrefix(name, "-") {
			return false
		}
		_, ok := p.Getent(database, name)
		return ok
	})
}
