package table

import (
	"slices"
	"strings"
)

// Extra has filters that are rarely used: each one that is not empty must match.
type Extra struct {
	Reservations []string
	WCKeys       []string
	Licenses     []string // names; jobs that use any of them match
	// Hidden are partitions that are not shown: jobs match that are in any other one.
	Hidden []string
}

// extraFilter is an Extra with its lists as sets; a nil set matches every row.
type extraFilter struct{ reservations, wckeys, licenses, hidden map[string]bool }

func (e *Extra) compile() *extraFilter {
	if e == nil {
		return nil
	}
	return &extraFilter{set(e.Reservations), set(e.WCKeys), set(e.Licenses), set(e.Hidden)}
}

// pass reports whether the row matches; a nil filter matches every row.
func (e *extraFilter) pass(r *Row) bool {
	return e == nil || (e.reservations == nil || e.reservations[r.Reservation]) &&
		(e.wckeys == nil || e.wckeys[r.WCKey]) &&
		(e.licenses == nil || inAny(e.licenses, licenses(r.Licenses))) &&
		(e.hidden == nil || slices.ContainsFunc(r.parts(), func(p string) bool { return !e.hidden[p] }))
}

// licenses returns the names in a text such as "matlab:2,ansys@server:1".
func licenses(text string) []string {
	var out []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		name, _, _ := strings.Cut(part, ":")
		out = append(out, name)
	}
	return out
}
