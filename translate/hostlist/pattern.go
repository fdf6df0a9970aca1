package hostlist

import (
	"cmp"
	"slices"
	"strings"
)

// MaxBrackets is how many terms with brackets, and how many ranges in all, one
// Pattern may have. Plain names do not count.
const MaxBrackets = 1000

// Pattern is a node list expression that names are compared with. It takes as
// much memory as its text, however many names that stands for. Safe for
// concurrent use; the nil Pattern matches no name.
type Pattern struct {
	names map[string]bool
	// terms with brackets, by the literal text in front of the first one.
	terms map[string][][]segment
}

// ParsePattern reads expressions as Expand does, and refuses what Expand
// refuses, each by itself. More than MaxBrackets terms with brackets, or ranges,
// are refused too. The error is an *Error.
func ParsePattern(texts ...string) (*Pattern, error) {
	p := &Pattern{names: map[string]bool{}, terms: map[string][][]segment{}}
	ranges := 0
	for _, text := range texts {
		for _, term := range terms(text) {
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
				return nil, &Error{term, "too many ranges"}
			}
			head := e.segments[0].literal
			p.terms[head] = append(p.terms[head], e.segments)
		}
	}
	return p, nil
}

// Match reports whether the expression stands for the name.
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

// Empty reports whether the expression stands for no name.
func (p *Pattern) Empty() bool { return p == nil || len(p.names)+len(p.terms) == 0 }

// matchSegments follows every way to divide name among the segments at the same
// time: starts are the places where the next segment may begin.
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

// mergeSpans orders spans by width, then by first number, and merges those of
// one width that touch, so that hasNumber can search them.
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

// hasNumber reports whether one of the merged spans has the number n, written
// with so many digits. A number with leading zeros is only in spans that are as
// wide as it is.
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
