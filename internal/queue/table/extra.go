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

// pass reports whether the row passes; a nil Extra lets every row pass.
func (e *Extra) pass(r *Row) bool {
	if e == nil {
		return true
	}
	within := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return within(e.Reservations, r.Reservation) && within(e.WCKeys, r.WCKey) &&
		(len(e.Licenses) == 0 || slices.ContainsFunc(licenses(r.Licenses), func(l string) bool { return slices.Contains(e.Licenses, l) })) &&
		(len(e.Hidden) == 0 || slices.ContainsFunc(r.parts(), func(p string) bool { return !slices.Contains(e.Hidden, p) }))
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
