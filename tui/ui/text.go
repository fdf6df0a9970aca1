package ui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/internal/printable"
)

// Width returns the number of cells that text takes. The text must have no escape
// sequences.
func Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Truncate returns at most width cells of text. Text that is cut off ends with
// mark.
func Truncate(s string, width int, mark string) string {
	if width <= 0 {
		return ""
	}
	if ascii(s) {
		if len(s) <= width {
			return s
		}
		if width <= len(mark) || mark == "" {
			return s[:width]
		}
		return s[:width-Width(mark)] + mark
	}
	if Width(mark) >= width {
		mark = ""
	}
	return ansi.Truncate(s, width, mark)
}

// Pad returns text truncated or padded to exactly width cells; right aligns it to
// the right.
func Pad(s string, width int, right bool, mark string) string {
	if width <= 0 {
		return ""
	}
	s = Truncate(s, width, mark)
	n := width - Width(s)
	switch {
	case n <= 0:
		return s
	case right:
		return strings.Repeat(" ", n) + s
	}
	return s + strings.Repeat(" ", n)
}

// Wrap breaks text into lines of at most width cells, at spaces where it can.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return nil
	}
	if Width(s) <= width {
		return []string{s}
	}
	return strings.Split(ansi.Wrap(s, width, ",/"), "\n")
}

// Slice returns at most width cells of a line of text, starting with cell from.
func Slice(s string, from, width int) string {
	if width <= 0 {
		return ""
	}
	if ascii(s) {
		if from >= len(s) {
			return ""
		}
		s = s[from:]
		return s[:min(len(s), width)]
	}
	return ansi.Cut(s, from, from+width)
}

// Printable returns typed or pasted text as one line without control characters,
// at most limit bytes of it.
func Printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t', '\r':
			return ' '
		case utf8.RuneError:
			return -1
		}
		return r
	}, s)
	var b strings.Builder
	for _, r := range s {
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		if printable.Escape(string(r)) == string(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
