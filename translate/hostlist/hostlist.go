// Package hostlist reads and writes Slurm's node list expressions, such as
// n[1-3,5],m[08-11] (scontrol(1), show hostnames and show hostlist). It is
// pure: it knows nothing of which nodes exist.
package hostlist

import (
	"strconv"
	"strings"
)

// Limits that keep a short text from becoming a very long list.
const (
	maxRange = 1 << 16 // hosts in one range, Slurm's MAX_RANGE
	maxHosts = 1 << 18 // hosts in one expression
	maxDigit = 18      // digits of a number that is still counted with
)

// Error says why an expression cannot be read.
type Error struct {
	Text   string // the whole expression
	Detail string // the part that is wrong; empty: the form as a whole
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return "Invalid hostlist: " + e.Text
	}
	return "Invalid hostlist: " + e.Text + " (" + e.Detail + ")"
}

// Expand gives the names that text stands for, in its order, repetitions kept.
// Empty terms are skipped; an empty text gives nil. Zero padding is kept. The
// error is an *Error.
func Expand(text string) ([]string, error) {
	var names []string
	for _, term := range terms(text) {
		var err error
		if names, err = expandTerm(names, text, term); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// terms splits at commas and blanks outside brackets.
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

// expandTerm appends the names of one term: literal text and brackets in turn,
// the rightmost bracket counting fastest.
func expandTerm(names []string, text, term string) ([]string, error) {
	heads := []string{""}
	rest := term
	for {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			break
		}
		if strings.IndexByte(rest[:open], ']') >= 0 {
			return nil, &Error{text, "unexpected ] in " + term}
		}
		end := strings.IndexByte(rest[open:], ']')
		if end < 0 {
			return nil, &Error{text, "missing ] in " + term}
		}
		values, err := expandBracket(text, rest[open+1:open+end])
		if err != nil {
			return nil, err
		}
		if len(heads)*len(values)+len(names) > maxHosts {
			return nil, &Error{text, "too many hosts"}
		}
		heads = combine(heads, rest[:open], values)
		rest = rest[open+end+1:]
		if rest == "" {
			return append(names, heads...), nil
		}
	}
	// As Slurm: nothing follows the last bracket, and a plain name has none.
	if len(rest) != len(term) || strings.ContainsRune(rest, ']') {
		return nil, &Error{text, ""}
	}
	return append(names, rest), nil
}

func combine(heads []string, literal string, values []string) []string {
	out := make([]string, 0, len(heads)*len(values))
	for _, h := range heads {
		for _, v := range values {
			out = append(out, h+literal+v)
		}
	}
	return out
}

// expandBracket reads what stands between brackets: numbers and ranges.
func expandBracket(text, body string) ([]string, error) {
	var out []string
	for _, part := range strings.Split(body, ",") {
		lo, hi, found := strings.Cut(part, "-")
		if !found {
			hi = lo
		}
		first, ok1 := number(lo)
		last, ok2 := number(hi)
		if !ok1 || !ok2 || last < first {
			return nil, &Error{text, "Invalid range: `" + part + "'"}
		}
		if last-first >= maxRange {
			return nil, &Error{text, "Too many hosts in range `" + part + "'"}
		}
		for n := first; n <= last; n++ {
			out = append(out, pad(n, len(lo)))
		}
		if len(out) > maxHosts {
			return nil, &Error{text, "too many hosts"}
		}
	}
	return out, nil
}

// number reads decimal digits only.
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

func pad(n int64, width int) string {
	digits := strconv.FormatInt(n, 10)
	if len(digits) < width {
		return strings.Repeat("0", width-len(digits)) + digits
	}
	return digits
}
