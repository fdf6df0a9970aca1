package format

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/value"
)

// Field is a column of sacct, sacctmgr, sreport or sshare: its header and width.
type Field struct {
	Name  string
	Width int
	Left  bool // left-justified
}

// FieldStyle is the style of lines of fields.
type FieldStyle struct {
	// Delimiter separates the values of parsable lines (-p, -P), which have no
	// padding; empty: columns, unless Undelimited.
	Delimiter   string
	Undelimited bool // parsable lines with nothing between the values (-P --delimiter=)
	Ending      bool // the last value has a delimiter too (-p)
	NoHeader    bool
}

func (s *FieldStyle) columns() bool { return s.Delimiter == "" && !s.Undelimited }

// AppendFieldHeader appends the header and its line of dashes to b.
func AppendFieldHeader(b []byte, fields []Field, s FieldStyle) []byte {
	if s.NoHeader {
		return b
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
		if s.columns() && len(names[i]) > fields[i].Width {
			names[i] = names[i][:fields[i].Width]
		}
	}
	b = AppendFields(b, fields, names, s)
	if !s.columns() {
		return b
	}
	for i := range fields {
		b = append(b, strings.Repeat("-", fields[i].Width)...)
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// AppendFields appends a line of values to b. A value that is too wide is truncated
// and ends in a plus sign; control characters are escaped.
func AppendFields(b []byte, fields []Field, values []string, s FieldStyle) []byte {
	for i := range fields {
		start := len(b)
		b = append(b, values[i]...)
		b = printable.EscapeFrom(b, start)
		switch {
		case s.columns():
			b = fitField(b, start, &fields[i])
			b = append(b, ' ')
		case i < len(fields)-1 || s.Ending:
			b = append(b, s.Delimiter...)
		}
	}
	return append(b, '\n')
}

// fitField fits b[start:] to the width of the field and marks a truncated value.
func fitField(b []byte, start int, f *Field) []byte {
	if f.Width == 0 {
		return b[:start]
	}
	before := len([]rune(string(b[start:])))
	b = fit(b, start, f.Width, !f.Left)
	if before > f.Width {
		b = append(b[:start+offset(b[start:], f.Width-1)], '+')
	}
	return b
}

// ParseFields parses a format such as "jobid,user%20,state%-10": names of the table
// or prefixes of them, in either case. The number after % is the width; a negative
// one means left-justified. bad is the first name that is not in the table.
func ParseFields(table []Field, text string) (at []int, fields []Field, bad string) {
	for item := range strings.SplitSeq(text, ",") {
		name, width, sized := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" {
			continue
		}
		i := fieldByName(table, name)
		if i < 0 {
			return nil, nil, name
		}
		f := table[i]
		if n := parseWidth(width); sized && n != 0 {
			f.Left = n < 0
			f.Width = max(n, -n)
		}
		at, fields = append(at, i), append(fields, f)
	}
	return at, fields, ""
}

// maxWidth is the widest column.
const maxWidth = 1 << 20

// parseWidth returns the number that the width of a column begins with; 0: there is none.
func parseWidth(text string) int {
	return int(min(max(value.Leading(text), -maxWidth), maxWidth))
}

// WithoutRepeated returns a format without the names that it has twice, in either case, as
// sacctmgr and sshare read it.
func WithoutRepeated(text string) string {
	seen := map[string]bool{}
	items := slices.DeleteFunc(strings.Split(text, ","), func(item string) bool {
		key := strings.ToLower(strings.TrimSpace(item))
		again := seen[key]
		seen[key] = true
		return again
	})
	return strings.Join(items, ",")
}

// FieldsBeforeGap returns the names of a format before the first that is empty, where sacct and
// sstat stop reading: "jobid,,state" is "jobid".
func FieldsBeforeGap(text string) string {
	before, _, _ := strings.Cut(","+text, ",,")
	return strings.TrimPrefix(before, ",")
}

// ParseSharedFields is ParseFields for sacct and sstat, whose columns of one field all
// have the width that the last of them with a width gave. zero: a width of 0, or one that is
// no number, leaves nothing of the column but the space behind it.
func ParseSharedFields(table []Field, text string, zero bool) (at []int, fields []Field, bad string) {
	at, fields, bad = ParseFields(table, text)
	shared := map[int]Field{}
	i := 0
	for item := range strings.SplitSeq(text, ",") {
		name, width, sized := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" || i >= len(at) {
			continue
		}
		if n := parseWidth(width); sized && (n != 0 || zero) {
			f := fields[i]
			f.Width, f.Left = max(n, -n), n < 0
			shared[at[i]] = f
		}
		i++
	}
	for i := range fields {
		if f, ok := shared[at[i]]; ok {
			fields[i] = f
		}
	}
	return at, fields, bad
}

// fieldByName returns the index of the field with the given name or, if there is
// none, prefix; -1: there is none.
func fieldByName(table []Field, name string) int {
	found := -1
	for i := range table {
		n := table[i].Name
		if strings.EqualFold(n, name) {
			return i
		}
		if found < 0 && len(n) > len(name) && strings.EqualFold(n[:len(name)], name) {
			found = i
		}
	}
	return found
}
