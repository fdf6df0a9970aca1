// Package hostlist parses and formats Slurm's node list expressions, such as
// n[1-3,5],m[08-11] (scontrol(1), show hostnames and show hostlist). It is pure: it
// does not depend on which nodes exist.
package hostlist

import (
	"errors"
	"iter"
	"strconv"
	"strings"
)

// Limits on the number of names, as a short text can represent many.
const (
	maxRange = 1 << 16 // hosts in one range, Slurm's MAX_RANGE
	maxHosts = 1 << 18 // hosts in one expression
	maxDigit = 18      // digits of a number
)

// Error describes an invalid expression.
type Error struct {
	Text   string // the whole expression
	Detail string // what is wrong; empty: the syntax as a whole
	ranged bool   // Detail is about a range
	open   bool   // a bracket is not closed
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return "Invalid hostlist: " + e.Text
	}
	return "Invalid hostlist: " + e.Text + " (" + e.Detail + ")"
}

// RangeError returns the line that Slurm's commands print about an invalid range before their
// own message about the list, or "" if err is not about a range.
func RangeError(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.ranged {
		return "_parse_single_range: " + e.Detail
	}
	return ""
}

// IsOpen reports whether err is about a bracket that is not closed, as in a text that is
// still being typed.
func IsOpen(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.open
}

// Expand returns the names that text represents, in order and with duplicates. Zero
// padding is preserved. Empty terms are skipped; for an empty text it returns nil.
// The error is an *Error.
func Expand(text string) ([]string, error) { return expandTerms(text, terms(text)) }

// ExpandLenient is Expand for what users type: as in Slurm's commands, a bracket that is
// not closed ends at the next comma, and "a[1-3" stands for the name "a]".
func ExpandLenient(text string) ([]string, error) {
	return expandTerms(text, terms(closeBrackets(text)))
}

// expandTerms expands the terms of text.
func expandTerms(text string, terms []string) (names []string, err error) {
	for _, term := range terms {
		if names, err = expandTerm(names, text, term); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// closeBrackets returns text with a name in place of each term whose bracket is not closed.
func closeBrackets(text string) string {
	list := terms(text)
	if len(list) == 0 {
		return text
	}
	last := list[len(list)-1] // a bracket that is not closed contains the rest of the text
	name, open, found := strings.Cut(last, "[")
	if !found || strings.Contains(last, "]") {
		return text
	}
	_, rest, _ := strings.Cut(open, ",")
	return strings.TrimSuffix(text, last) + name + "]," + closeBrackets(rest)
}

// terms splits text at commas and blanks outside of brackets.
func terms(text string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || depth == 0 && strings.IndexByte(", \t\n", text[i]) >= 0:
			if i > start {
				out = append(out, text[start:i])
			}
			start = i + 1
		case text[i] == '[':
			depth++
		case text[i] == ']' && depth > 0:
			depth--
		}
	}
	return out
}

// span is a range between brackets: the numbers from first to last, each
// written with at least width digits.
type span struct {
	first, last int64
	width       int
}

// segment is literal text followed by a bracket.
type segment struct {
	literal string
	spans   []span
}

// expression is one term: a sequence of segments. A term without brackets is a plain
// name and has no segments.
type expression struct {
	name     string
	segments []segment
	hosts    int // number of names
}

// expandTerm appends the names of one term in Slurm's order: the numbers of the last
// bracket vary fastest, then those of the first, and those of the last but one slowest.
func expandTerm(names []string, text, term string) ([]string, error) {
	e, err := parseTerm(text, term)
	if err != nil {
		return nil, err
	}
	if e.segments == nil {
		return append(names, e.name), nil
	}
	if e.hosts+len(names) > maxHosts {
		return nil, &Error{Text: text, Detail: "too many hosts"}
	}
	heads := []string{""}
	last := len(e.segments) - 1
	for _, s := range e.segments[:last] {
		heads = s.appendSlowly(heads)
	}
	return append(names, e.segments[last].appendFast(heads)...), nil
}

// parseTerm parses one term without expanding it. text is the whole expression, for
// errors.
func parseTerm(text, term string) (expression, error) {
	e := expression{name: term, hosts: 1}
	rest := term
	for {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			break
		}
		if strings.IndexByte(rest[:open], ']') >= 0 {
			return e, &Error{Text: text, Detail: "unexpected ] in " + term}
		}
		end := strings.IndexByte(rest[open:], ']')
		if end < 0 {
			return e, &Error{Text: text, Detail: "missing ] in " + term, open: true}
		}
		spans, count, err := parseBracket(text, rest[open+1:open+end])
		if err != nil {
			return e, err
		}
		if e.hosts *= count; e.hosts > maxHosts {
			return e, &Error{Text: text, Detail: "too many hosts"}
		}
		e.segments = append(e.segments, segment{rest[:open], spans})
		rest = rest[open+end+1:]
		if rest == "" {
			return e, nil
		}
	}
	// As in Slurm, a term ends with its last bracket; a plain name may contain a ].
	if len(rest) != len(term) {
		return e, &Error{Text: text}
	}
	return e, nil
}

// appendFast appends the literal and each number of s to each of heads. The numbers
// vary faster than the heads.
func (s *segment) appendFast(heads []string) []string {
	var out []string
	for _, h := range heads {
		for tail := range s.tails() {
			out = append(out, h+tail)
		}
	}
	return out
}

// appendSlowly is appendFast with numbers that vary more slowly than the heads.
func (s *segment) appendSlowly(heads []string) []string {
	var out []string
	for tail := range s.tails() {
		for _, h := range heads {
			out = append(out, h+tail)
		}
	}
	return out
}

// tails returns the literal with each of the numbers.
func (s *segment) tails() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range s.spans {
			for n := r.first; n <= r.last; n++ {
				if !yield(s.literal + pad(n, r.width)) {
					return
				}
			}
		}
	}
}

// parseBracket parses the numbers and ranges between brackets, and counts the
// numbers.
func parseBracket(text, body string) (spans []span, count int, err error) {
	for part := range strings.SplitSeq(body, ",") {
		lo, hi, found := strings.Cut(part, "-")
		if !found || hi == "" { // as in Slurm, 3- is 3
			hi = lo
		}
		first, ok1 := number(lo)
		last, ok2 := number(hi)
		if !ok1 || !ok2 || last < first {
			return nil, 0, &Error{Text: text, Detail: "Invalid range: `" + part + "'", ranged: true}
		}
		if last-first >= maxRange {
			return nil, 0, &Error{Text: text, Detail: "Too many hosts in range `" + part + "'", ranged: true}
		}
		spans = append(spans, span{first, last, len(lo)})
		if count += int(last - first + 1); count > maxHosts {
			return nil, 0, &Error{Text: text, Detail: "too many hosts"}
		}
	}
	return spans, count, nil
}

// number parses decimal digits.
func number(s string) (int64, bool) {
	if s == "" || len(s) > maxDigit {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// pad returns n with at least width digits.
func pad(n int64, width int) string {
	digits := strconv.FormatInt(n, 10)
	if len(digits) < width {
		return strings.Repeat("0", width-len(digits)) + digits
	}
	return digits
}
