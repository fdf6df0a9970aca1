package hostlist

import (
	"cmp"
	"slices"
	"strings"
)

// MaxBrackets is the maximum number of terms with brackets, and of ranges in total,
// of one Pattern. Plain names do not count.
const MaxBrackets = 1000

// Pattern is a node list expression for matching names. Its size depends on that of
// its text, not on the number of names. It is safe for concurrent use; the nil
// Pattern matches no name.
type Pattern struct {
	names map[string]bool
	// terms with brackets, by the literal text before the first one.
	terms map[string][][]segment
}

// ParsePattern parses expressions. The same ones are invalid as for ExpandLenient, and
// there may be at most MaxBrackets terms with brackets or ranges in total. The error is
// an *Error.
func ParsePattern(texts ...string) (*Pattern, error) {
	p := &Pattern{names: map[string]bool{}, terms: map[string][][]segment{}}
	ranges := 0
	for _, text := range texts {
		for _, term := range terms(closeBrackets(text)) {
			e, err := parseTerm(text, term)
			if err != nil {
				return nil, err
			}
			if e.segments == nil {
				p.names[e.name] = true
				continue
			}
			for i := range e.segments {
				ranges += len(e.segments[i].spans)
				e.segments[i].spans = mergeSpans(e.segments[i].spans)
			}
			if ranges > MaxBrackets {
				return nil, &Error{Text: term, Detail: "too many ranges"}
			}
			head := e.segments[0].literal
			p.terms[head] = append(p.terms[head], e.segments)
		}
	}
	return p, nil
}

// Match reports whether the expression contains the name.
func (p *Pattern) Match(name string) bool {
	switch {
	case p == nil:
		return false
	case p.names[name]:
		return true
	case len(p.terms) == 0:
		return false
	}
	for end := range len(name) {
		for _, segments := range p.terms[name[:end]] {
			if matchSegments(segments, name) {
				return true
			}
		}
	}
	return false
}

// Empty reports whether the expression contains no name.
func (p *Pattern) Empty() bool { return p == nil || len(p.names)+len(p.terms) == 0 }

// matchSegments tries all divisions of name into segments at the same time: starts
// are the offsets at which the next segment may start.
func matchSegments(segments []segment, name string) bool {
	starts := []int{0}
	for _, s := range segments {
		var next []int
		for _, at := range starts {
			rest, found := strings.CutPrefix(name[at:], s.literal)
			if !found {
				continue
			}
			at = len(name) - len(rest)
			for width := 1; width <= min(len(rest), maxDigit); width++ {
				n, ok := number(rest[:width])
				if !ok {
					break
				}
				if !slices.Contains(next, at+width) && hasNumber(s.spans, n, width) {
					next = append(next, at+width)
				}
			}
		}
		if starts = next; len(starts) == 0 {
			return false
		}
	}
	return slices.Contains(starts, len(name))
}

// mergeSpans sorts spans by width and first number, and merges overlapping and
// adjacent ones of the same width, so that hasNumber can search them.
func mergeSpans(spans []span) []span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.first, b.first))
	})
	out := spans[:1]
	for _, s := range spans[1:] {
		last := &out[len(out)-1]
		if s.width == last.width && s.first <= last.last+1 {
			last.last = max(last.last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}

// hasNumber reports whether one of the merged spans contains the number n, written
// with the given number of digits. A number with leading zeros is only in spans of
// its own width.
func hasNumber(spans []span, n int64, digits int) bool {
	narrowest := digits
	if digits == 1 || len(pad(n, 0)) == digits {
		narrowest = 1
	}
	for width := narrowest; width <= digits; width++ {
		at, found := slices.BinarySearchFunc(spans, span{first: n, width: width}, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.first, b.first))
		})
		if found || at > 0 && spans[at-1].width == width && n <= spans[at-1].last {
			return true
		}
	}
	return false
}
