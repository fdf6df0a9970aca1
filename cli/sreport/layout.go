package sreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
)

// timeLayout is Slurm's form of a time.
const timeLayout = "2006-01-02T15:04:05"

// printTitle prints the title of a report; withSeconds adds the length of its
// time.
func (o *Options) printTitle(title, unit string, withSeconds bool) error {
	if o.style.NoHeader {
		return nil
	}
	line := strings.Repeat("-", 80)
	length := ""
	if withSeconds {
		length = fmt.Sprintf(" (%d secs)", o.end.Unix()-o.start.Unix())
	}
	return o.p.Print(fmt.Sprintf("%s\n%s %s - %s%s\n%s\n%s\n", line, title,
		o.start.Format(timeLayout), o.end.Add(-time.Second).Format(timeLayout), length, unit, line))
}

// usageUnit returns the second line of the title.
func (o *Options) usageUnit() string {
	if !o.unit.amount {
		return "Usage reported in " + o.unit.name
	}
	what := "TRES"
	if !o.tresGiven {
		what = "CPU"
	}
	return "Usage reported in " + what + " " + o.unit.name
}

// amountWidth returns the width of a column with an amount, a percentage or
// both.
func (o *Options) amountWidth() int {
	if o.unit.amount && o.unit.percent {
		return 17
	}
	return 8
}

// columnNames maps names that users give to names of columns in the output, with the
// minimum length of an abbreviation.
var columnNames = []struct {
	typed string
	least int
	shown string
}{
	{"tresname", 5, "TRES Name"}, {"trescount", 5, "TRES Count"}, {"cpucount", 2, "TRES Count"},
	{"planneddown", 2, "PLND Down"}, {"reserved", 3, "Planned"}, {"overcommitted", 1, "Over Comm"},
}

// shownNames replaces given names of columns by those of the output.
func shownNames(text string) string {
	items := strings.Split(text, ",")
	for i, item := range items {
		name, width, hasWidth := strings.Cut(item, "%")
		for _, c := range columnNames {
			if keyvalue.Abbreviates(name, c.typed, c.least) {
				name = c.shown
			}
		}
		if items[i] = name; hasWidth {
			items[i] += "%" + width
		}
	}
	return strings.Join(items, ",")
}

// selectColumns returns the columns of table that format= names. Unknown
// names are printed and ignored.
func (o *Options) selectColumns(table []format.Field) (at []int, selected []format.Field) {
	for item := range strings.SplitSeq(o.format, ",") {
		i, f, bad := format.ParseFields(table, shownNames(item))
		if bad != "" || o.format == "" {
			fmt.Fprintf(o.p.Err, " Unknown field '%s'\n", printable.Escape(item))
			o.invalidCondition = true
			continue
		}
		at, selected = append(at, i...), append(selected, f...)
	}
	return at, selected
}

// print prints rows, which are maps from the name of a column to its value, with the
// columns of format= or else the usual ones.
func (o *Options) print(table []format.Field, usual string, rows []map[string]string) error {
	var at []int
	var selected []format.Field
	if o.formatGiven {
		at, selected = o.selectColumns(table)
	} else {
		for name := range strings.SplitSeq(usual, ",") {
			i := slices.IndexFunc(table, func(f format.Field) bool { return f.Name == name })
			at, selected = append(at, i), append(selected, table[i])
		}
	}
	b := format.AppendFieldHeader(nil, selected, o.style)
	values := make([]string, len(at))
	for _, r := range rows {
		for i, k := range at {
			values[i] = r[table[k].Name]
		}
		b = format.AppendFields(b, selected, values, o.style)
	}
	_, err := o.p.Out.Write(b)
	return err
}
