package value

import "strings"

// SplitJobs splits a list of job ids at commas outside of brackets: "7,8_[1,3]" is 7 and
// 8_[1,3]. It drops empty elements.
func SplitJobs(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ',' && depth == 0
	})
}
