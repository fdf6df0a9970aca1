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

// Default are the columns that are shown by default, by their names in squeue -O.
// Only the terminal UI has the column gpus.
var Default = []string{
	"JobArrayID", "StateCompact", "UserName", "Name", "Partition", "TimeUsed", "TimeLimit", "NumNodes", "NumCPUs",
	"gpus", "StartTime", "ReasonList",
}

// column is a column that can be shown.
type column struct {
	*format.Column[status.Job]
	columnLayout
}

// columnLayout is how a column is laid out.
type columnLayout struct {
	min, max int  // width in cells
	rank     int  // where there is no room, columns of the highest rank are left out first; 0: never
	right    bool // aligned to the right
	fixed    bool // the user chose the width max
}

// unbounded is the maximum width of columns that are never truncated.
const unbounded = 1 << 10

// columnLayouts are the layouts of the usual columns; that of "" is for all others.
var columnLayouts = map[string]columnLayout{
	"JobArrayID":   {min: 1, max: unbounded, rank: 0},
	"JobID":        {min: 1, max: unbounded, rank: 0},
	"StateCompact": {min: 2, max: 4, rank: 1},
	"State":        {min: 2, max: 13, rank: 1},
	"ReasonList":   {min: 16, max: unbounded, rank: 2},
	"TimeUsed":     {min: 4, max: 14, rank: 3, right: true},
	"Name":         {min: 6, max: 24, rank: 4},
	"UserName":     {min: 4, max: 12, rank: 5},
	"NumNodes":     {min: 1, max: 6, rank: 6, right: true},
	"gpus":         {min: 4, max: 5, rank: 7, right: true},
	"Partition":    {min: 5, max: 10, rank: 8},
	"StartTime":    {min: 5, max: 19, rank: 9},
	"NumCPUs":      {min: 4, max: 7, rank: 10, right: true},
	"TimeLimit":    {min: 6, max: 14, rank: 11, right: true},
	"TimeLeft":     {min: 6, max: 14, rank: 9, right: true},
	"PriorityLong": {min: 4, max: 11, rank: 12, right: true},
	"NodeList":     {min: 8, max: 40, rank: 9},
	"Reason":       {min: 8, max: 30, rank: 9},
	"":             {min: 4, max: 30, rank: 20},
}

// gpuColumn is the number of GPUs that a job has or requests.
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

// findColumn returns the column of that name or squeue letter, nil if there is none.
func findColumn(name string) *column {
	c := &gpuColumn
	if !strings.EqualFold(name, c.Name) {
		i := slices.IndexFunc(format.JobColumns(), func(c format.Column[status.Job]) bool {
			return c.Name != "" && strings.EqualFold(c.Name, name) || len(name) == 1 && c.Letter == name[0]
		})
		if i < 0 {
			return nil
		}
		c = &format.JobColumns()[i]
	}
	l, ok := columnLayouts[c.Name]
	if !ok {
		l = columnLayouts[""]
	}
	return &column{c, l}
}

// Known returns the names of all columns that can be shown.
func Known() []string {
	names := []string{gpuColumn.Name}
	for i := range format.JobColumns() {
		if c := &format.JobColumns()[i]; c.Name != "" && c.Header != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// findColumns returns the columns of these names, and a column of the id even if
// none is named. unknown are the names of no column.
func findColumns(names []string) (cols []*column, unknown []string) {
	for _, n := range names {
		c := findColumn(n)
		switch {
		case c == nil:
			unknown = append(unknown, n)
		case !slices.ContainsFunc(cols, func(o *column) bool { return o.Name == c.Name }):
			cols = append(cols, c)
		}
	}
	if !slices.ContainsFunc(cols, isID) {
		cols = append([]*column{findColumn("JobArrayID")}, cols...)
	}
	return cols, unknown
}

// isID reports whether a column shows the job id, which is never truncated.
func isID(c *column) bool { return c.Name == "JobArrayID" || c.Name == "JobID" }

// Width is the width and alignment that a layout gives to a column.
type Width struct {
	Cells int // 0: the default
	Right bool
}

// WidthsOf returns the widths in a layout of squeue -o or -O, by column.
func WidthsOf(l format.Layout[status.Job]) map[string]Width {
	out := map[string]Width{}
	for i := range l {
		if c := l[i].Column; c != nil && c.Name != "" {
			out[c.Name] = Width{l[i].Width, l[i].Right}
		}
	}
	return out
}

// applyWidths sets the widths and alignments of columns. Ids keep their width.
func applyWidths(cols []*column, widths map[string]Width) {
	for _, c := range cols {
		w, ok := widths[c.Name]
		if !ok || w.Cells <= 0 {
			continue
		}
		c.right = w.Right
		if !isID(c) {
			c.min, c.max, c.fixed = min(c.min, w.Cells), w.Cells, true
		}
	}
}

// NamesOf returns the columns of a layout of squeue -o or -O.
func NamesOf(l format.Layout[status.Job]) []string {
	var out []string
	for i := range l {
		if c := l[i].Column; c != nil && c.Name != "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// parseOrder parses an order of squeue -S: letters or names of columns, with - in
// front for a descending order. It ignores unknown ones.
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

// formatOrder returns keys in the form that parseOrder parses.
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
