package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
)

// DefaultNameWidth is the width of a column of -O without an explicit width.
const DefaultNameWidth = 20

// ParseLetters parses a format of -o: text with %[[.]WIDTH]LETTER, where a dot
// means right-justified. bad lists the letters that are not columns; they stay in
// the output as text, as in Slurm. "%all" stands for every column if the format
// contains no other %.
func ParseLetters[R any](columns []Column[R], text string) (l Layout[R], bad []string) {
	prefix, rest, more := strings.Cut(text, "%")
	if prefix != "" {
		l = append(l, Cell[R]{Text: prefix})
	}
	if more && rest == "all" {
		return append(l, allLetters(columns)...), nil
	}
	for more {
		var piece string
		if piece, rest, more = strings.Cut(rest, "%"); piece == "" {
			continue // empty between two % signs, or after the last one
		}
		cell, letter := parseCell(columns, piece)
		if cell.Column == nil {
			cell.Text = "%" + piece
			bad = append(bad, letter)
		}
		l = append(l, cell)
	}
	return l, bad
}

// parseCell parses the text between two % signs.
func parseCell[R any](columns []Column[R], piece string) (c Cell[R], letter string) {
	rest := piece
	if c.Auto = strings.HasPrefix(rest, "#"); c.Auto {
		rest = rest[1:]
	}
	if c.Right = strings.HasPrefix(rest, "."); c.Right {
		rest = rest[1:]
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	width := rest[:digits]
	rest = rest[digits:]
	if rest == "" {
		return c, ""
	}
	c.Column = findColumn(columns, func(col *Column[R]) bool { return col.Letter == rest[0] })
	c.Text = rest[1:]
	c.setWidth(width)
	if c.Column != nil && c.Column.Left {
		c.Right = false
	}
	return c, rest[:1]
}

// setWidth parses a width. Slurm stores it in 32 bits, where a negative width means
// the whole value and a blank.
func (c *Cell[R]) setWidth(text string) {
	n, _ := strconv.ParseInt(text, 10, 64) // out of range: the maximum
	if c.Width = int(int32(n)); c.Width < 0 {
		c.Width, c.Text = 0, " "+c.Text
	}
}

// allLetters returns the columns that have a letter, lower case first, each followed
// by a bar.
func allLetters[R any](columns []Column[R]) Layout[R] {
	var l Layout[R]
	for i := range columns {
		if columns[i].Letter != 0 {
			bar := "|"
			if columns[i].Letter == 'Z' { // no bar after the last column of squeue; squeue -s has no Z
				bar = ""
			}
			l = append(l, Cell[R]{Column: &columns[i], Text: bar})
		}
	}
	slices.SortFunc(l, func(a, b Cell[R]) int {
		return cmp.Compare(a.Column.Letter^0x20, b.Column.Letter^0x20)
	})
	return l
}

// otherNames are second names of columns that Slurm accepts.
var otherNames = map[string]string{"NumTasks": "NumTask"}

// ParseNames parses a format of -O: NAME[:[.][WIDTH][TEXT]],... Names are
// case-insensitive. Without a width a column is DefaultNameWidth wide; with only
// TEXT it is as wide as its value. bad lists the names that are not columns; their
// TEXT stays in the output, as in Slurm.
func ParseNames[R any](columns []Column[R], text string) (l Layout[R], bad []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		name, spec, given := strings.Cut(item, ":")
		col := findColumn(columns, func(c *Column[R]) bool {
			return c.Name != "" && (strings.EqualFold(c.Name, name) || strings.EqualFold(otherNames[c.Name], name))
		})
		if col == nil {
			bad = append(bad, name)
			spec = strings.TrimLeft(strings.TrimPrefix(spec, "."), "0123456789")
			l = append(l, Cell[R]{Text: spec})
			continue
		}
		c := Cell[R]{Column: col, Width: DefaultNameWidth}
		if given {
			if c.Right = strings.HasPrefix(spec, "."); c.Right {
				spec = spec[1:]
			}
			sign := min(len(spec)-len(strings.TrimLeft(spec, "+-")), 1)
			digits := sign + len(spec[sign:]) - len(strings.TrimLeft(spec[sign:], "0123456789"))
			c.Text = spec[digits:]
			c.setWidth(spec[:digits])
		}
		l = append(l, c)
	}
	return l, bad
}

// InvalidColumns returns the lines with which a command reports the columns that
// ParseLetters or ParseNames did not find.
func InvalidColumns(command string, bad []string) string {
	var b strings.Builder
	for _, name := range bad {
		b.WriteString(command + ": error: Invalid job format specification: " + printable.Escape(name) + "\n")
	}
	return b.String()
}
