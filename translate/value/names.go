package value

import "strings"

// Names returns the names in a list separated by commas, without duplicates and empty
// names.
func Names(list string) []string {
	var out []string
	seen := map[string]bool{}
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
