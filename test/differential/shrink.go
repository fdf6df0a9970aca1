package main

import "strings"

// shrink returns the shortest form of c that it finds for which differs is true: it drops
// parts, then elements of values, until nothing more can go. differs is called at most
// limit times.
func shrink(c *call, limit int, differs func(*call) bool) *call {
	for {
		smaller := firstThat(candidates(c), &limit, differs)
		if smaller == nil {
			return c
		}
		c = smaller
	}
}

// firstThat returns the first candidate for which differs is true, or nil.
func firstThat(list []*call, limit *int, differs func(*call) bool) *call {
	for _, d := range list {
		if *limit--; *limit < 0 {
			return nil
		}
		if differs(d) {
			return d
		}
	}
	return nil
}

// candidates returns every call that has one part, or one element of a value, less than c.
func candidates(c *call) []*call {
	var out []*call
	for i := range c.parts {
		if !c.parts[i].fixed {
			out = append(out, c.without(i))
		}
	}
	for i, p := range c.parts {
		for _, v := range shorterValues(p.value) {
			out = append(out, c.withValue(i, v))
		}
	}
	return out
}

// shorterValues returns value without one of its elements.
func shorterValues(value string) []string {
	for _, separator := range []string{",", " ", "|"} {
		elements := strings.Split(value, separator)
		if len(elements) < 2 {
			continue
		}
		var out []string
		for i := range elements {
			rest := append(append([]string{}, elements[:i]...), elements[i+1:]...)
			if v := strings.Join(rest, separator); v != "" {
				out = append(out, v)
			}
		}
		return out
	}
	return nil
}

// withValue returns c with another value of part i.
func (c *call) withValue(i int, value string) *call {
	d := *c
	d.parts = append([]part{}, c.parts...)
	p := c.parts[i]
	words := make([]string, len(p.words))
	for k, w := range p.words {
		old, with := p.value, value
		if p.place == inScript {
			old, with = quote(old), quote(with)
		}
		words[k] = w
		if at := strings.LastIndex(w, old); at >= 0 {
			words[k] = w[:at] + with
		}
	}
	p.words, p.value = words, value
	d.parts[i] = p
	return &d
}
