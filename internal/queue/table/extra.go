package table

import (
	"slices"
	"strings"
)

// Extra are filters that are seldom given: each that is not empty must hold.
type Extra struct {
	Reservations []string
	WCKeys       []string
	Licenses     []string // names; a job passes that uses any of them
	// Hidden are partitions that are not to be shown: a job passes that is in
	// any other.
	Hidden []string
}

// extraFilter is an Extra with its lists as sets; nil sets let every row pass.
type extraFilter struct{ reservations, wckeys, licenses, hidden map[string]bool }

func (e *Extra) compile() *extraFilter {
	if e == nil {
		return nil
	}
	return &extraFilter{set(e.Reservations), set(e.WCKeys), set(e.Licenses), set(e.Hidden)}
}

// pass reports whether the row passes; a nil filter lets every row pass.
func (e *extraFilter) pass(r *Row) bool {
	return e == nil || (e.reservations == nil || e.reservations[r.Reservation]) &&
		(e.wckeys == nil || e.wckeys[r.WCKey]) &&
		(e.licenses == nil || inAny(e.licenses, licenses(r.Licenses))) &&
		(e.hidden == nil || slices.ContainsFunc(r.parts(), func(p string) bool { return !e.hidden[p] }))
}

// licenses are the names in a text such as "matlab:2,ansys@server:1".
func licenses(text string) []string {
	var out []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		name, _, _ := strings.Cut(part, ":")
		out = append(out, name)
	}
	return out
}
