package snapshot

import (
	"slices"
	"strconv"
	"strings"
)

// constraint is what --constraint asks for (sbatch(1)): one or more
// alternatives, of which all nodes of a job are to serve the same, "[a|b]".
type constraint struct {
	alternatives []alternative
	names        []string // of all features it mentions
}

// alternative is a condition that every node has to meet, and counts of nodes
// that meet others besides ("a*2&b*4").
type alternative struct {
	every condition
	some  []counted
}

// counted is "feature*count".
type counted struct {
	is    condition
	count int
}

// condition tells whether a node with these features will do. nil: any does.
type condition func(has func(string) bool) bool

func (c condition) met(has func(string) bool) bool { return c == nil || c(has) }

func both(a, b condition) condition {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(has func(string) bool) bool { return a(has) && b(has) }
}

func either(a, b condition) condition {
	if a == nil || b == nil {
		return nil
	}
	return func(has func(string) bool) bool { return a(has) || b(has) }
}

// Bounds of an expression and of what it stands for.
const (
	mostAlternatives = 64
	mostText         = 4096
)

// parseConstraint reads an expression of features with & (or ,), |, counts,
// parentheses and brackets; & binds closer than |. ok is false when it is none,
// or has counts in some alternatives only.
func parseConstraint(text string) (c constraint, ok bool) {
	if len(text) > mostText {
		return constraint{}, false
	}
	p := constraintParser{rest: strings.Join(strings.Fields(text), "")}
	all := p.or(false)
	counts := slices.ContainsFunc(all, func(a alternative) bool { return len(a.some) > 0 })
	if p.bad || p.rest != "" || len(all) > mostAlternatives || counts && len(all) > 1 {
		return constraint{}, false
	}
	return constraint{all, p.names}, true
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
func (p *constraintParser) or(exclusive bool) []alternative {
	all := p.and()
	for !p.bad && p.take("|") != 0 {
		next := p.and()
		switch {
		case exclusive || len(all) != 1 || len(next) != 1 || len(all[0].some)+len(next[0].some) > 0:
			all = append(all, next...)
		default:
			all = []alternative{{every: either(all[0].every, next[0].every)}}
		}
	}
	return all
}

// and reads factors joined by & or a comma.
func (p *constraintParser) and() []alternative {
	all := p.factor()
	for !p.bad && p.take("&,") != 0 {
		var product []alternative
		next := p.factor()
		for _, a := range all {
			for _, b := range next {
				product = append(product, alternative{both(a.every, b.every), slices.Concat(a.some, b.some)})
			}
		}
		if all = product; len(all) > mostAlternatives {
			p.bad = true
		}
	}
	return all
}

// factor reads a feature or a group, and its count.
func (p *constraintParser) factor() []alternative {
	var all []alternative
	switch p.take("([") {
	case '(':
		all = p.or(false)
		p.bad = p.bad || p.take(")") == 0
	case '[':
		all = within(p.or(true))
		p.bad = p.bad || p.take("]") == 0
	default:
		end := strings.IndexAny(p.rest, "&,|()[]*")
		if end < 0 {
			end = len(p.rest)
		}
		name := p.rest[:end]
		p.rest, p.bad = p.rest[end:], p.bad || name == ""
		p.names = append(p.names, name)
		all = []alternative{{every: func(has func(string) bool) bool { return has(name) }}}
	}
	if p.take("*") == 0 {
		return all
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(p.rest)
	}
	n, err := strconv.Atoi(p.rest[:end])
	p.rest = p.rest[end:]
	p.bad = p.bad || err != nil || n < 1 || n > 1<<20 || len(all) != 1 || len(all[0].some) > 0
	if p.bad {
		return nil
	}
	return []alternative{{some: []counted{{all[0].every, n}}}}
}

// within makes counts in brackets say where all of the nodes are: on those
// that meet one of the counted conditions.
func within(all []alternative) []alternative {
	for i := range all {
		a := &all[i]
		if len(a.some) == 0 || a.every != nil {
			continue
		}
		some := a.some
		a.every = func(has func(string) bool) bool {
			return slices.ContainsFunc(some, func(c counted) bool { return c.is.met(has) })
		}
	}
	return all
}
