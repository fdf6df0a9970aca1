package squeue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

const rule = "-----------------------------\n"

// settingsText returns the block of settings that --verbose prints before the list.
func (o *Options) settingsText(v *option.Values) string {
	number := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	users := v.Get("user")
	if v.Has("me") {
		users = strconv.Itoa(o.p.UID)
	}
	given := func(name string) string { return cmp.Or(v.Get(name), "(null)") }
	var b strings.Builder
	b.WriteString(rule)
	for _, line := range [][2]string{
		{"all         ", fmt.Sprint(v.Has("all"))},
		{"array       ", fmt.Sprint(v.Has("array"))},
		{"federation  ", fmt.Sprint(v.Has("federation"))},
		{"format      ", given("format")},
		{"iterate     ", fmt.Sprint(int(o.every / time.Second))},
		{"job_flag    ", number(v.Has("jobs"))},
		{"jobs        ", given("jobs")},
		{"licenses    ", given("licenses")},
		{"local       ", fmt.Sprint(v.Has("local"))},
		{"names       ", given("name")},
		{"nodes       ", hostlist.Fold(o.filter.Nodes)},
		{"partitions  ", given("partition")},
		{"priority    ", fmt.Sprint(v.Has("priority"))},
		{"reservation ", given("reservation")},
		{"sibling      ", fmt.Sprint(v.Has("sibling"))},
		{"sort        ", given("sort")},
		{"start_flag  ", number(v.Has("start"))},
		{"states      ", given("states")},
		{"step_flag   ", number(o.steps)},
		{"steps       ", given("steps")},
		{"users       ", cmp.Or(users, "(null)")},
		{"verbose     ", fmt.Sprint(v.Count("verbose"))},
	} {
		b.WriteString(line[0] + "= " + line[1] + "\n")
	}
	return b.String() + rule + "\n\n"
}
