package queue

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
)

// Default are the columns of the queue where nothing else is asked for, by
// their names in squeue -O; gpus is the terminal UI's own.
var Default = []string{"JobArrayID", "StateCompact", "UserName", "Name", "Partition", "TimeUsed", "TimeLimit", "NumNodes", "NumCPUs", "gpus", "StartTime", "ReasonList"}

// column is a column that can be shown.
type column struct {
	*format.Column[status.Job]
	columnLayout
}

// look is how a column is laid out. Width are the least and the most cells; the
// higher the rank, the earlier it is left out where there is no room.
type columnLayout struct {
	least, most, rank int
	right             bool
	fixed             bool // most is what the user asked for
}

// looks are the layouts of usual columns; others get that of "".
var columnLayouts = map[string]columnLayout{
	"JobArrayID": {1, 1 << 10, 0, false, false}, "JobID": {1, 1 << 10, 0, false, false}, // ids are never cut
	"StateCompact": {2, 4, 1, false, false}, "State": {2, 13, 1, false, false}, "ReasonList": {16, 1 << 10, 2, false, false}, "TimeUsed": {4, 14, 3, true, false},
	"Name": {6, 24, 4, false, false}, "UserName": {4, 12, 5, false, false}, "NumNodes": {1, 6, 6, true, false}, "gpus": {4, 5, 7, true, false}, "Partition": {5, 10, 8, false, false},
	"StartTime": {5, 19, 9, false, false}, "NumCPUs": {4, 7, 10, true, false}, "TimeLimit": {6, 14, 11, true, false}, "TimeLeft": {6, 14, 9, true, false},
	"PriorityLong": {4, 11, 12, true, false}, "NodeList": {8, 40, 9, false, false}, "Reason": {8, 30, 9, false, false}, "": {4, 30, 20, false, false},
}

// gpuColumn counts the GPUs that a job has or wants.
var gpuColumn = format.Column[status.Job]{
	Name: "gpus", Header: "GPUS", Fields: []string{"tres"},
	Append: func(b []byte, j *status.Job, _ *format.Settings) []byte {
		if n := query.GPUs(j.TRES); n > 0 {
			return strconv.AppendInt(b, int64(n), 10)
		}
		return b
	},
	Value: func(j *status.Job, _ *format.Settings) int64 { return int64(query.GPUs(j.TRES)) },
}

// find is the column of that name or squeue letter, nil if there is none.
func findColumn(name string) *column {
	c := &gpuColumn
	if !strings.EqualFold(name, c.Name) {
		i := slices.IndexFunc(format.JobColumns, func(c format.Column[status.Job]) bool {
			return c.Name != "" && strings.EqualFold(c.Name, name) || len(name) == 1 && c.Letter == name[0]
		})
		if i < 0 {
			return nil
		}
		c = &format.JobColumns[i]
	}
	l, ok := columnLayouts[c.Name]
	if !ok {
		l = columnLayouts[""]
	}
	return &column{c, l}
}

// Known lists the names of all columns that can be shown.
func Known() []string {
	names := []string{gpuColumn.Name}
	for i := range format.JobColumns {
		if c := &format.JobColumns[i]; c.Name != "" && c.Header != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// columnsOf finds columns by name; those that are none are told in bad. The id
// is always among them.
func findColumns(names []string) (cols []*column, bad []string) {
	for _, n := range names {
		c := findColumn(n)
		switch {
		case c == nil:
			bad = append(bad, n)
		case !slices.ContainsFunc(cols, func(o *column) bool { return o.Name == c.Name }):
			cols = append(cols, c)
		}
	}
	if !slices.ContainsFunc(cols, isID) {
		cols = append([]*column{findColumn("JobArrayID")}, cols...)
	}
	return cols, bad
}

func isID(c *column) bool { return c.Name == "JobArrayID" || c.Name == "JobID" }

// Width is what a layout says of a column.
type Width struct {
	Cells int // the most it gets; 0: as usual
	Right bool
}

// WidthsOf are what a layout of squeue -o or -O says of its columns, by name.
func WidthsOf(l format.Layout[status.Job]) map[string]Width {
	out := map[string]Width{}
	for i := range l {
		if c := l[i].Column; c != nil && c.Name != "" {
			out[c.Name] = Width{l[i].Width, l[i].Right}
		}
	}
	return out
}

// widen gives columns the widths that a layout asks for. Ids are never cut.
func applyWidths(cols []*column, widths map[string]Width) {
	for _, c := range cols {
		w, ok := widths[c.Name]
		if !ok || w.Cells <= 0 {
			continue
		}
		c.right = w.Right
		if !isID(c) {
			c.least, c.most, c.fixed = min(c.least, w.Cells), w.Cells, true
		}
	}
}

// NamesOf are the columns of a layout of squeue -o or -O.
func NamesOf(l format.Layout[status.Job]) []string {
	var out []string
	for i := range l {
		if c := l[i].Column; c != nil && c.Name != "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// keysOf reads an order of squeue -S: letters with - for descending, or names
// of columns.
func parseOrder(order string) []data.SortKey {
	var keys []data.SortKey
	for item := range strings.SplitSeq(order, ",") {
		item = strings.TrimSpace(item)
		name := strings.TrimLeft(item, "+-")
		if c := findColumn(name); c != nil && name != "" {
			keys = append(keys, data.SortKey{Column: c.Column, Descending: strings.HasPrefix(item, "-")})
		}
	}
	return keys
}

// orderOf writes keys as keysOf reads them.
func formatOrder(keys []data.SortKey) string {
	items := make([]string, len(keys))
	for i, k := range keys {
		items[i] = k.Column.Name
		if k.Column.Letter != 0 {
			items[i] = string(k.Column.Letter)
		}
		if k.Descending {
			items[i] = "-" + items[i]
		}
	}
	return strings.Join(items, ",")
}
