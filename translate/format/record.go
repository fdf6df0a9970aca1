package format

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
)

// Record is the description of an object as scontrol prints it: lines of Key=value
// pairs.
type Record struct {
	lines   [][]string
	indent  string // of the lines after the first; empty: three blanks
	compact bool   // no empty line after it
}

// line adds a line of formatted pairs.
func (r *Record) line(pairs ...string) { r.lines = append(r.lines, pairs) }

// pair returns Key=value with the value escaped.
func pair(key, value string) string { return key + "=" + printable.Escape(value) }

// Append appends the record to b, on several lines or on one.
func (r *Record) Append(b []byte, oneLine bool) []byte {
	for i, pairs := range r.lines {
		if i > 0 && oneLine {
			b = append(b, ' ')
		} else if i > 0 {
			b = append(append(b, '\n'), cmp.Or(r.indent, "   ")...)
		}
		b = append(b, strings.Join(pairs, " ")...)
	}
	if oneLine || r.compact {
		return append(b, '\n')
	}
	return append(b, "\n\n"...)
}

func orNull(text string) string {
	if text == "" {
		return "(null)"
	}
	return text
}

func itoa[T ~int32 | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// Digit returns 1 for true and 0 for false.
func Digit(v bool) string {
	if v {
		return "1"
	}
	return "0"
}
