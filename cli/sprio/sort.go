package sprio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// sortLetters are the columns that -S accepts.
const sortLetters = "iaAcfFjJNpPqQrtTuyY"

// sorted sorts items by the value of -S: letters of columns, each in descending order if
// a - comes before it. Equal jobs remain in the order of their ids. As in Slurm, the value is
// read only if there are jobs.
func sorted(items []status.Priority, spec string, s *format.Settings) error {
	if len(items) == 0 {
		return nil
	}
	slices.SortStableFunc(items, func(a, b status.Priority) int { return cmp.Compare(a.ID, b.ID) })
	keys := strings.FieldsFunc(spec, func(r rune) bool { return r == ',' })
	for _, key := range slices.Backward(keys) {
		letter := strings.TrimLeft(key, "+-")
		if len(letter) != 1 || !strings.Contains(sortLetters, letter) {
			return slurmerr.Newf(slurmerr.Refused, "Invalid sort specification: %s", printable.Escape(key))
		}
		if letter == "i" {
			letter = ""
		}
		less := by(letter, s)
		slices.SortStableFunc(items, func(a, b status.Priority) int {
			if key[0] == '-' {
				return less(&b, &a)
			}
			return less(&a, &b)
		})
	}
	return nil
}

// by compares the values of a column: numbers as numbers. The empty letter is the job's
// id.
func by(letter string, s *format.Settings) func(a, b *status.Priority) int {
	if letter == "" {
		return func(a, b *status.Priority) int { return cmp.Compare(a.ID, b.ID) }
	}
	layout, _ := format.ParseLetters(format.PriorityColumns(), "%"+letter)
	return func(a, b *status.Priority) int {
		x, y := string(layout.AppendRow(nil, a, s)), string(layout.AppendRow(nil, b, s))
		m, err1 := strconv.ParseFloat(strings.TrimSpace(x), 64)
		n, err2 := strconv.ParseFloat(strings.TrimSpace(y), 64)
		if err1 == nil && err2 == nil {
			return cmp.Compare(m, n)
		}
		return strings.Compare(x, y)
	}
}
