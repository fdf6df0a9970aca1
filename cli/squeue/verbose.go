package squeue

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// settingsText returns the block of settings that --verbose prints before the list.
func (o *Options) settingsText(v *option.Values) string {
	users := v.Get("user")
	if v.Has("me") {
		users = strconv.Itoa(o.p.UID)
	}
	given := func(name string) string { return cmp.Or(v.Get(name), "(null)") }
	return format.SettingsBlock(12, [][2]any{
		{"all", v.Has("all")},
		{"array", v.Has("array")},
		{"federation", v.Has("federation")},
		{"format", given("format")},
		{"iterate", int(o.every / time.Second)},
		{"job_flag", format.Digit(v.Has("jobs"))},
		{"jobs", cmp.Or(strings.Join(o.filter.IDs, ","), "(null)")},
		{"licenses", given("licenses")},
		{"local", v.Has("local")},
		{"names", given("name")},
		{"nodes", hostlist.Fold(o.filter.Nodes)},
		{"partitions", given("partition")},
		{"priority", v.Has("priority")},
		{"reservation", given("reservation")},
		{"sibling      ", v.Has("sibling")},
		{"sort", given("sort")},
		{"start_flag", format.Digit(v.Has("start"))},
		{"states", given("states")},
		{"step_flag", format.Digit(o.steps)},
		{"steps", given("steps")},
		{"users", cmp.Or(users, "(null)")},
		{"verbose", v.Count("verbose")},
	}) + "\n\n"
}
