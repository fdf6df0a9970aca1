// Package format formats jobs, steps, nodes, partitions and accounting records as
// Slurm's commands print them: columns by letters (-o) or names (-O), records of
// Key=value pairs, and documents in JSON and YAML. The files with a command's name
// have its formats; the others have what the commands share: layouts of columns,
// fields, records, documents, units and times. The package is pure: the time and
// the time zone come with Settings.
package format

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/berth-hpc/berth/internal/printable"
)

// Settings are what a value depends on besides its row.
type Settings struct {
	Now       int64          // Unix seconds
	Location  *time.Location // nil: UTC
	NoConvert bool           // do not convert units (--noconvert)
	Details   bool           // scontrol -d
	Cluster   string         // name of the cluster
	// ArrayLen is SLURM_BITSTR_LEN, the maximum length of a set of array tasks;
	// nil: the default, 0: no limit.
	ArrayLen *int
	// Layout is the layout of times for time.Format; empty: 2006-01-02T15:04:05.
	Layout string
	// GRESNames are the names of the cluster's generic resources, for scontrol -d show node.
	GRESNames []string
}

// Column is one kind of value that a row of type R can show.
type Column[R any] struct {
	Letter byte   // of -o; 0: none
	Name   string // of -O; empty: none
	Header string
	Fields []string // JSON names of the row's fields that Append reads
	// Append appends the value of row to b.
	Append func(b []byte, row *R, s *Settings) []byte
	// Untruncated: right-justified values are not truncated (durations and
	// node lists in squeue), except UNLIMITED and reasons.
	// UntruncatedHeader: the header is not truncated either.
	Untruncated, UntruncatedHeader bool
	// Suffix, if not 0, is a last character that a truncated value keeps.
	Suffix byte
	// Left columns are left-justified even if the width has a dot.
	Left bool
	// Compare orders rows by this column; nil: by Value, or by the text.
	Compare func(a, b *R) int
	// Value returns a number to order rows by, for columns that depend on the time.
	Value func(row *R, s *Settings) int64
	// Missing reports whether the row has no value. Such rows come last in either
	// direction.
	Missing func(row *R) bool
}

// untruncated reports whether a right-justified value must not be truncated.
func (c *Column[R]) untruncated(value []byte) bool {
	return c.Untruncated && string(value) != "UNLIMITED" && value[0] != '('
}

// Cell is a column in a layout, or a piece of fixed text.
type Cell[R any] struct {
	Column *Column[R] // nil: Text alone
	Width  int        // 0: as wide as the value
	Right  bool       // right-justified
	Auto   bool       // Widen sets Width to that of the widest value (%#)
	Text   string     // after the value
}

// Layout is a line of output.
type Layout[R any] []Cell[R]

// AppendHeader appends the header line to b.
func (l Layout[R]) AppendHeader(b []byte) []byte {
	for i := range l {
		c := &l[i]
		if c.Column != nil {
			start := len(b)
			b = append(b, c.Column.Header...)
			if !c.Column.UntruncatedHeader || !c.Right || len(c.Column.Header) <= c.Width {
				b = fit(b, start, c.Width, c.Right)
			}
		}
		b = append(b, c.Text...)
	}
	return append(b, '\n')
}

// null is what columns show that have no value.
const null = "(null)"

// AppendRow appends the line of one row to b. It escapes control characters in
// values, so that a row cannot break the line or control the terminal.
func (l Layout[R]) AppendRow(b []byte, row *R, s *Settings) []byte {
	for i := range l {
		c := &l[i]
		if c.Column != nil {
			start := len(b)
			b = c.Column.Append(b, row, s)
			b = printable.EscapeFrom(b, start)
			if c.Right && len(b)-start > c.Width && c.Column.untruncated(b[start:]) {
				b = append(b, c.Text...)
				continue
			}
			if !c.Right && 0 < c.Width && c.Width < len(null) && string(b[start:]) == null {
				b = b[:start] // as the C library prints a null pointer of which a part is wanted
			}
			suffixed := c.Column.Suffix != 0 && len(b) > start && b[len(b)-1] == c.Column.Suffix
			truncated := c.Width > 0 && len(b)-start > c.Width
			b = fit(b, start, c.Width, c.Right)
			if suffixed && truncated {
				b[len(b)-1] = c.Column.Suffix
			}
		}
		b = append(b, c.Text...)
	}
	return append(b, '\n')
}

// Has reports whether the layout contains the named column.
func (l Layout[R]) Has(name string) bool {
	return slices.ContainsFunc(l, func(c Cell[R]) bool {
		return c.Column != nil && c.Column.Name == name
	})
}

// Fields returns the row fields that the layout reads, without duplicates.
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

// fit truncates or pads b[start:] to width characters. Slurm counts bytes; here a
// character of several bytes counts once and is never split.
func fit(b []byte, start, width int, right bool) []byte {
	if width <= 0 {
		return b
	}
	n := len(b) - start
	if !isASCII(b[start:]) {
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

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// offset returns the byte offset of character n of b.
func offset(b []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

// findColumn returns the first column for which match returns true, or nil.
func findColumn[R any](columns []Column[R], match func(*Column[R]) bool) *Column[R] {
	for i := range columns {
		if match(&columns[i]) {
			return &columns[i]
		}
	}
	return nil
}
