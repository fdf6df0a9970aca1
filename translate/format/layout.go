// Package format prints rows of jobs, nodes and partitions as Slurm's commands
// do: columns by % letters (-o) or by names (-O), with Slurm's widths,
// durations, units and instants. It is pure: the clock and the time zone come
// with Settings.
package format

import (
	"slices"
	"time"
	"unicode/utf8"
)

// Settings are what values depend on beside the row.
type Settings struct {
	Now       int64          // Unix seconds
	Location  *time.Location // nil: UTC
	NoConvert bool           // leave units as they are (--noconvert)
	Details   bool           // scontrol -d
	Cluster   string         // the cluster's name, where a column shows it
	// ArrayLen is SLURM_BITSTR_LEN: how long a set of array tasks may be; nil: as
	// usual, 0: any.
	ArrayLen *int
	// Layout is Go's layout for instants; empty: 2006-01-02T15:04:05.
	Layout string
}

// Column is one kind of value that a row of type R can show.
type Column[R any] struct {
	Letter byte   // of -o; 0: none
	Name   string // of -O; empty: none
	Header string
	Fields []string // JSON names of the row's fields that Append reads
	// Append adds the value of row to b.
	Append func(b []byte, row *R, s *Settings) []byte
	// Whole values are not cut where they are right-justified (durations and
	// node lists in squeue); words in their place (UNLIMITED, a reason) are.
	// WholeHeader: nor is the header.
	Whole, WholeHeader bool
	// Left columns stand on the left, be there a dot before the width.
	Left bool
	// Compare orders rows by this column; nil: by Value, or else by the text.
	Compare func(a, b *R) int
	// Value is a number to order rows by, for columns that depend on the time.
	Value func(row *R, s *Settings) int64
	// Missing values come last in either direction.
	Missing func(row *R) bool
}

func (c *Column[R]) whole(value []byte) bool {
	return c.Whole && string(value) != "UNLIMITED" && value[0] != '('
}

// Cell is a column in a layout, or a piece of fixed text.
type Cell[R any] struct {
	Column *Column[R] // nil: Text alone
	Width  int        // 0: as wide as the value
	Right  bool       // right-justified
	Auto   bool       // Width grows to the widest value (%#)
	Text   string     // after the value
}

// Layout is a line of output.
type Layout[R any] []Cell[R]

// AppendHeader adds the line of headers to b.
func (l Layout[R]) AppendHeader(b []byte) []byte {
	for i := range l {
		c := &l[i]
		if c.Column != nil {
			start := len(b)
			b = append(b, c.Column.Header...)
			if !c.Column.WholeHeader || !c.Right || len(c.Column.Header) <= c.Width {
				b = fit(b, start, c.Width, c.Right)
			}
		}
		b = append(b, c.Text...)
	}
	return append(b, '\n')
}

// AppendRow adds the line of one row to b. Control characters in values are
// escaped, so that no row can break a line or speak to the terminal.
func (l Layout[R]) AppendRow(b []byte, row *R, s *Settings) []byte {
	for i := range l {
		c := &l[i]
		if c.Column != nil {
			start := len(b)
			b = c.Column.Append(b, row, s)
			b = escapeFrom(b, start)
			if c.Right && len(b)-start > c.Width && c.Column.whole(b[start:]) {
				b = append(b, c.Text...)
				continue
			}
			b = fit(b, start, c.Width, c.Right)
		}
		b = append(b, c.Text...)
	}
	return append(b, '\n')
}

// Has tells whether the layout shows the column of that name.
func (l Layout[R]) Has(name string) bool {
	return slices.ContainsFunc(l, func(c Cell[R]) bool { return c.Column != nil && c.Column.Name == name })
}

// Fields lists the row fields the layout reads, each once.
func (l Layout[R]) Fields() []string {
	var out []string
	seen := map[string]bool{}
	for i := range l {
		if l[i].Column == nil {
			continue
		}
		for _, f := range l[i].Column.Fields {
			if !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// fit cuts or pads b[start:] to width characters. Slurm counts bytes; here a
// character of several bytes counts once and is never cut in two.
func fit(b []byte, start, width int, right bool) []byte {
	if width <= 0 {
		return b
	}
	n := len(b) - start
	if !ascii(b[start:]) {
		n = utf8.RuneCount(b[start:])
	}
	switch {
	case n > width:
		return b[:start+offset(b[start:], width)]
	case n == width:
		return b
	}
	pad := width - n
	end := len(b)
	for range pad {
		b = append(b, ' ')
	}
	if right {
		copy(b[start+pad:], b[start:end])
		for i := range pad {
			b[start+i] = ' '
		}
	}
	return b
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offset is the byte offset of the n-th character of b.
func offset(b []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

// find returns the column for which match holds, or nil.
func find[R any](columns []Column[R], match func(*Column[R]) bool) *Column[R] {
	for i := range columns {
		if match(&columns[i]) {
			return &columns[i]
		}
	}
	return nil
}
