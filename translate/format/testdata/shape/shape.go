// Package shape tells which members a JSON document has, and of which kinds:
// what a program sees that reads it. A member's path is that of the objects
// around it: .jobs[].name; a member whose name is a number is N.
package shape

import (
	"encoding/json"
	"slices"
	"strings"
)

// Shape has the kinds of each path.
type Shape map[string]Kinds

// Kinds are null, bool, int, float, string, array, object, or number: an
// object {set, infinite, number}.
type Kinds []string

// String lists them.
func (k Kinds) String() string { return strings.Join(k, " ") }

// Parse reads lines of a path and its kinds; # begins a comment.
func Parse(text string) Shape {
	s := Shape{}
	for line := range strings.SplitSeq(text, "\n") {
		path, kinds, ok := strings.Cut(line, " ")
		if ok && !strings.HasPrefix(line, "#") {
			s[path] = strings.Fields(kinds)
		}
	}
	return s
}

// Add puts in what v, read with numbers as they are, has at path and below.
func (s Shape) Add(path string, v any) {
	kind := kindOf(v)
	if !slices.Contains(s[path], kind) {
		s[path] = append(s[path], kind)
		slices.Sort(s[path])
	}
	switch x := v.(type) {
	case map[string]any:
		for key, member := range x {
			if strings.Trim(key, "0123456789") == "" {
				key = "N"
			}
			if kind == "object" {
				s.Add(path+"."+key, member)
			}
		}
	case []any:
		for _, item := range x {
			s.Add(path+"[]", item)
		}
	}
}

func kindOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(string(x), ".e") {
			return "float"
		}
		return "int"
	case []any:
		return "array"
	case map[string]any:
		_, set := x["set"]
		_, infinite := x["infinite"]
		if _, number := x["number"]; set && infinite && number && len(x) == 3 {
			return "number"
		}
	}
	return "object"
}
