package value

import (
	"slices"
	"strconv"
	"strings"
)

// Constraint is a parsed value of --constraint (sbatch(1)).
type Constraint struct {
	// Alternatives are those of "[a|b]": all nodes of a job must meet the same one.
	Alternatives []Alternative
	// Names are the names of all features in it, sorted and unique.
	Names []string
}

// Alternative is a condition that every node must meet, and numbers of nodes that must
// meet further conditions ("a*2&b*4").
type Alternative struct {
	Every Features
	Some  []CountedFeatures
}

// CountedFeatures is FEATURES*COUNT.
type CountedFeatures struct {
	Is    Features
	Count int
}

// Features is a condition on the features of one node. At most one of its fields is
// set; every node meets the zero value. All and Any have at least two members, none of
// which is of the same kind.
type Features struct {
	Name string
	All  []Features
	Any  []Features
}

// Met reports whether a node meets the condition; has reports whether it has a
// feature.
func (f Features) Met(has func(string) bool) bool {
	met := func(m Features) bool { return m.Met(has) }
	switch {
	case f.Name != "":
		return has(f.Name)
	case f.Any != nil:
		return slices.ContainsFunc(f.Any, met)
	}
	return !slices.ContainsFunc(f.All, func(m Features) bool { return !met(m) })
}

// None reports whether f is the zero value.
func (f Features) None() bool { return f.Name == "" && f.All == nil && f.Any == nil }

// And returns the condition that both f and g are met.
func (f Features) And(g Features) Features {
	switch {
	case f.None():
		return g
	case g.None():
		return f
	}
	return Features{All: slices.Concat(members(f, f.All), members(g, g.All))}
}

// or returns the condition that f or g is met.
func (f Features) or(g Features) Features {
	if f.None() || g.None() {
		return Features{}
	}
	return Features{Any: slices.Concat(members(f, f.Any), members(g, g.Any))}
}

// members returns of if it is not nil, else f itself: of are the members of f if f is a
// condition of the same kind.
func members(f Features, of []Features) []Features {
	if of != nil {
		return of
	}
	return []Features{f}
}

// String returns f in parentheses if it needs them next to & and |.
func (f Features) String() string {
	if f.Name != "" {
		return f.Name
	}
	of, sep := f.All, "&"
	if f.Any != nil {
		of, sep = f.Any, "|"
	}
	parts := make([]string, len(of))
	for i := range of {
		parts[i] = of[i].String()
	}
	return "(" + strings.Join(parts, sep) + ")"
}

// And returns the constraint that both c and other are met.
func (c Constraint) And(other Constraint) Constraint {
	out := Constraint{
		Alternatives: product(c.Alternatives, other.Alternatives),
		Names:        slices.Concat(c.Names, other.Names),
	}
	slices.Sort(out.Names)
	out.Names = slices.Compact(out.Names)
	return out
}

func product(some, others []Alternative) []Alternative {
	var out []Alternative
	for _, a := range some {
		for _, b := range others {
			out = append(out, Alternative{a.Every.And(b.Every), slices.Concat(a.Some, b.Some)})
		}
	}
	return out
}

// Limits on an expression and its result.
const (
	maxAlternatives = 64
	maxConstraint   = 4096 // bytes
	maxCounted      = 1 << 20
)

// noBlanks removes ASCII blanks.
var noBlanks = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\v", "", "\f", "", "\r", "")

// ParseConstraint parses an expression of features with & (or ,), |, counts,
// parentheses and brackets; & has the higher precedence. Blanks and an operator at the
// end are ignored. Counts in only some of the alternatives are invalid.
func ParseConstraint(text string) (Constraint, error) {
	if len(text) > maxConstraint {
		return Constraint{}, ErrInvalid
	}
	p := constraintParser{rest: noBlanks.Replace(text)}
	if n := len(p.rest); n > 1 && strings.IndexByte("&|,", p.rest[n-1]) >= 0 {
		p.rest = p.rest[:n-1]
	}
	all := p.or(false)
	counts := slices.ContainsFunc(all, func(a Alternative) bool { return len(a.Some) > 0 })
	if p.bad || p.rest != "" || len(all) > maxAlternatives || counts && len(all) > 1 {
		return Constraint{}, ErrInvalid
	}
	slices.Sort(p.names)
	return Constraint{all, slices.Compact(p.names)}, nil
}

// FormatConstraint returns an expression for c. ParseConstraint accepts it unless it is
// too long.
func FormatConstraint(c Constraint) string {
	parts := make([]string, len(c.Alternatives))
	for i, a := range c.Alternatives {
		parts[i] = a.String()
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "[" + strings.Join(parts, "|") + "]"
}

// String returns a as the factors of a constraint.
func (a Alternative) String() string {
	var parts []string
	if !a.Every.None() {
		parts = append(parts, a.Every.String())
	}
	for _, s := range a.Some {
		parts = append(parts, s.Is.String()+"*"+strconv.Itoa(s.Count))
	}
	return strings.Join(parts, "&")
}

type constraintParser struct {
	rest  string
	names []string
	bad   bool
}

// accept consumes and returns the first byte if it is in set, or returns 0.
func (p *constraintParser) accept(set string) byte {
	if p.rest == "" || !strings.Contains(set, p.rest[:1]) {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

// or parses terms separated by |. In brackets each is a separate alternative; otherwise
// a node may meet any of them.
func (p *constraintParser) or(exclusive bool) []Alternative {
	all := p.and()
	for !p.bad && p.accept("|") != 0 {
		next := p.and()
		switch {
		case exclusive || len(all) != 1 || len(next) != 1 || len(all[0].Some)+len(next[0].Some) > 0:
			all = append(all, next...)
		default:
			all = []Alternative{{Every: all[0].Every.or(next[0].Every)}}
		}
	}
	return all
}

// and parses factors separated by & or a comma.
func (p *constraintParser) and() []Alternative {
	all := p.factor()
	for !p.bad && p.accept("&,") != 0 {
		if all = product(all, p.factor()); len(all) > maxAlternatives {
			p.bad = true
		}
	}
	return all
}

// factor parses a feature or a group, and its count.
func (p *constraintParser) factor() []Alternative {
	var all []Alternative
	switch p.accept("([") {
	case '(':
		all = p.or(false)
		p.bad = p.bad || p.accept(")") == 0
	case '[':
		all = restrictToCounted(p.or(true))
		p.bad = p.bad || p.accept("]") == 0
	default:
		all = []Alternative{{Every: Features{Name: p.name()}}}
	}
	if p.bad || p.accept("*") == 0 {
		return all
	}
	n := p.count()
	p.bad = p.bad || len(all) != 1 || len(all[0].Some) > 0
	if p.bad {
		return nil
	}
	return []Alternative{{Some: []CountedFeatures{{all[0].Every, n}}}}
}

func (p *constraintParser) name() string {
	end := strings.IndexAny(p.rest, "&,|()[]*")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	p.rest, p.bad = p.rest[end:], p.bad || name == ""
	p.names = append(p.names, name)
	return name
}

func (p *constraintParser) count() int {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(p.rest)
	}
	n, err := strconv.Atoi(p.rest[:end])
	p.rest, p.bad = p.rest[end:], p.bad || err != nil || n < 1 || n > maxCounted
	return n
}

// restrictToCounted requires every node to meet one of the counted conditions, as
// counts in brackets do.
func restrictToCounted(all []Alternative) []Alternative {
	for i := range all {
		a := &all[i]
		if len(a.Some) == 0 || !a.Every.None() {
			continue
		}
		a.Every = a.Some[0].Is
		for _, s := range a.Some[1:] {
			a.Every = a.Every.or(s.Is)
		}
	}
	return all
}
