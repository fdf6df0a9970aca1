package value

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestConstraintGrammar checks which of five nodes meet each constraint.
func TestConstraintGrammar(t *testing.T) {
	nodes := []string{"a", "b", "a b", "c", ""}
	for text, want := range map[string]string{
		"a":                "[0 2]",
		"a&b":              "[2]",
		"a,b":              "[2]",
		"a|b":              "[0 1 2]",
		"a&b|c":            "[2 3]",
		"(a|c)&b":          "[2]",
		"c|(a&b)":          "[2 3]",
		"[a|c]":            "[0 2] or [3]",
		"[a|c]&b":          "[2] or []",
		"a*2":              "[0 1 2 3 4] with 2 of [0 2]",
		"a*2&c*1":          "[0 1 2 3 4] with 2 of [0 2] 1 of [3]",
		"[a*2&c*1]":        "[0 2 3] with 2 of [0 2] 1 of [3]",
		"[(a&b)*1&c*3]":    "[2 3] with 1 of [2] 3 of [3]",
		"[(a&b)|(b|c)]":    "[2] or [1 2 3]",
		"a*1&b":            "[1 2] with 1 of [0 2]",
		"a | b":            "[0 1 2]",
		"a*1|c":            "bad",
		"":                 "bad",
		"a&":               "[0 2]",
		"a|b|":             "[0 1 2]",
		"(a":               "bad",
		"a]":               "bad",
		"a*":               "bad",
		"a*0":              "bad",
		"[a|b]*2":          "bad",
		"a*2*2":            "bad",
		"a b&|":            "bad",
		"&a":               "bad",
		"a*99999999999999": "bad",
	} {
		if got := showConstraint(text, nodes); got != want {
			t.Errorf("%q means %s, want %s", text, got, want)
		}
	}
}

func showConstraint(text string, nodes []string) string {
	c, err := ParseConstraint(text)
	if err != nil {
		return "bad"
	}
	meet := func(is Features) string {
		out := []int{}
		for i, features := range nodes {
			if is.Met(func(f string) bool { return slices.Contains(strings.Fields(features), f) }) {
				out = append(out, i)
			}
		}
		return fmt.Sprint(out)
	}
	var all []string
	for _, a := range c.Alternatives {
		one := meet(a.Every)
		for i, s := range a.Some {
			if i == 0 {
				one += " with"
			}
			one += fmt.Sprintf(" %d of %s", s.Count, meet(s.Is))
		}
		all = append(all, one)
	}
	return strings.Join(all, " or ")
}

func FuzzConstraint(f *testing.F) {
	for _, s := range []string{"a&b|c", "[a*2&(b|c)*1]", "((a))", "a*9|[b]", "[a|b]&[c|d&e]", "[[a*1]&b]", "\xe3\x80 \x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConstraint(text)
		if err != nil {
			return
		}
		for _, a := range c.Alternatives {
			a.Every.Met(func(string) bool { return true })
		}
		written := FormatConstraint(c)
		if len(written) > maxConstraint {
			return
		}
		again, err := ParseConstraint(written)
		roundTrip(t, text, c, written, again, err)
	})
}
