package ui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/translate/format"
)

// Safe is text from users or the cluster as it may be shown: nothing in it can
// steer the terminal or break a line, and every character has a known width.
func Safe(s string) string { return format.Escape(s) }

// Width is how many cells text takes, which holds no escape sequences.
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

// Cut is at most width cells of text; what is cut off leaves a mark.
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

// Pad is text cut or filled to exactly width cells.
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

// Window is the part of a line of text from cell from on, at most width cells.
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

// Printable is what of typed or pasted text goes into a line: no control
// characters, one line, and not more than it can hold.
func Printable(s string, most int) string {
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
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		if format.Escape(string(r)) == string(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
