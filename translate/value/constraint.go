package value

import (
	"slices"
	"strconv"
	"strings"
)

// Constraint is what --constraint asks for (sbatch(1)).
type Constraint struct {
	// Alternatives: all nodes of a job are to serve the same one, "[a|b]".
	Alternatives []Alternative
	// Names are those of all features it mentions, ascending, each once.
	Names []string
}

// Alternative is a condition that every node has to meet, and counts of nodes
// that meet others besides ("a*2&b*4").
type Alternative struct {
	Every Features
	Some  []CountedFeatures
}

// CountedFeatures is FEATURES*COUNT.
type CountedFeatures struct {
	Is    Features
	Count int
}

// Features is a condition on the features of one node. At most one of its
// fields is set; the zero value holds of every node. Neither All nor Any has
// members of its own kind, or fewer than two.
type Features struct {
	Name string
	All  []Features
	Any  []Features
}

// Met tells whether a node with these features will do.
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

// None tells whether f is no condition at all.
func (f Features) None() bool { return f.Name == "" && f.All == nil && f.Any == nil }

// And is both conditions at once.
func (f Features) And(g Features) Features {
	switch {
	case f.None():
		return g
	case g.None():
		return f
	}
	return Features{All: slices.Concat(members(f, f.All), members(g, g.All))}
}

// or is either condition.
func (f Features) or(g Features) Features {
	if f.None() || g.None() {
		return Features{}
	}
	return Features{Any: slices.Concat(members(f, f.Any), members(g, g.Any))}
}

// members are those of a condition of the kind asked for, else it is the only one.
func members(f Features, of []Features) []Features {
	if of != nil {
		return of
	}
	return []Features{f}
}

// String writes f so that it stays whole beside & and |.
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

// And is both constraints at once.
func (c Constraint) And(other Constraint) Constraint {
	out := Constraint{Alternatives: product(c.Alternatives, other.Alternatives), Names: slices.Concat(c.Names, other.Names)}
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

// Bounds of an expression and of what it stands for.
const (
	mostAlternatives = 64
	mostConstraint   = 4096 // bytes
	mostCounted      = 1 << 20
)

// noBlanks takes the blanks of ASCII away, byte by byte: what is left makes no
// new ones.
var noBlanks = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\v", "", "\f", "", "\r", "")

// ParseConstraint reads an expression of features with & (or ,), |, counts,
// parentheses and brackets; & binds closer than |. Blanks and an operator at the
// end do not count. Counts
// in some alternatives only are invalid.
func ParseConstraint(text string) (Constraint, error) {
	if len(text) > mostConstraint {
		return Constraint{}, ErrInvalid
	}
	p := constraintParser{rest: noBlanks.Replace(text)}
	if n := len(p.rest); n > 1 && strings.IndexByte("&|,", p.rest[n-1]) >= 0 {
		p.rest = p.rest[:n-1]
	}
	all := p.or(false)
	counts := slices.ContainsFunc(all, func(a Alternative) bool { return len(a.Some) > 0 })
	if p.bad || p.rest != "" || len(all) > mostAlternatives || counts && len(all) > 1 {
		return Constraint{}, ErrInvalid
	}
	slices.Sort(p.names)
	return Constraint{all, slices.Compact(p.names)}, nil
}

// FormatConstraint writes c so that ParseConstraint gives it again, unless that
// is longer than it takes.
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

// String writes a as the factors of a constraint.
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

// take removes the first byte if it is one of set, and returns it.
func (p *constraintParser) take(set string) byte {
	if p.rest == "" || !strings.Contains(set, p.rest[:1]) {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

// or reads terms joined by |. In brackets each is an alternative of its own,
// else a node may meet any of them.
func (p *constraintParser) or(exclusive bool) []Alternative {
	all := p.and()
	for !p.bad && p.take("|") != 0 {
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

// and reads factors joined by & or a comma.
func (p *constraintParser) and() []Alternative {
	all := p.factor()
	for !p.bad && p.take("&,") != 0 {
		if all = product(all, p.factor()); len(all) > mostAlternatives {
			p.bad = true
		}
	}
	return all
}

// factor reads a feature or a group, and its count.
func (p *constraintParser) factor() []Alternative {
	var all []Alternative
	switch p.take("([") {
	case '(':
		all = p.or(false)
		p.bad = p.bad || p.take(")") == 0
	case '[':
		all = within(p.or(true))
		p.bad = p.bad || p.take("]") == 0
	default:
		all = []Alternative{{Every: Features{Name: p.name()}}}
	}
	if p.bad || p.take("*") == 0 {
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
	p.rest, p.bad = p.rest[end:], p.bad || err != nil || n < 1 || n > mostCounted
	return n
}

// within makes counts in brackets say where all of the nodes are: on those
// that meet one of the counted conditions.
func within(all []Alternative) []Alternative {
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
