package sinfo

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

const rule = "-----------------------------\n"

// named are the usual formats as Slurm shows them, with the names of the fields.
var named = map[string]string{
	format.NodeDefault: "partition:9 ,available:.5 ,time:.10 ,nodes:.6 ,statecompact:.6 ,nodelist:0",
	format.NodeLong: "partition:9 ,available:.5 ,time:.10 ,size:.10 ,root:.4 ,oversubscribe:.8 ,groups:.10 ,nodes:.6 ," +
		"statelong:.11 ,nodelist:0",
	format.NodeCentric: "nodelist:0 ,nodes:.6 ,partition:.9 ,statecompact:6",
	format.NodeCentricLong: "nodelist:0 ,nodes:.6 ,partition:.9 ,statelong:.11 ,cpus:4 ,socketcorethread:.8 ,memory:.6 ," +
		"disk:.8 ,weight:.6 ,features:.8 ,reason:20",
	format.NodeReasons:     "reason:20 ,user:9 ,timestamp:19 ,nodelist:0",
	format.NodeReasonsLong: "reason:20 ,userlong:12 ,timestamp:19 ,statecompact:6 ,nodelist:0",
	format.NodeSummary:     "partition:9 ,available:.5 ,time:.10 ,nodeaiot:.16 ,nodelist:0",
}

// settingsText returns the block of settings that --verbose prints before the list.
func (o *Options) settingsText(v *option.Values) string {
	number := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	given := func(name, missing string) string { return cmp.Or(v.Get(name), missing) }
	states := given("states", "(null)")
	if o.reasons && !v.Has("states") {
		states = "down"
	}
	text, _ := o.usual(v.Has("summarize"))
	var b strings.Builder
	b.WriteString(rule)
	for _, line := range [][2]string{
		{"dead        ", fmt.Sprint(v.Has("dead"))},
		{"exact       ", number(o.exact)},
		{"filtering   ", fmt.Sprint(o.keep != nil || o.states != nil || len(o.nodes) > 0 || len(o.partitions) > 0)},
		{"format      ", cmp.Or(v.Get("Format"), v.Get("format"), named[text])},
		{"iterate     ", fmt.Sprint(int(o.every / time.Second))},
		{"long        ", fmt.Sprint(o.long)},
		{"no_header   ", fmt.Sprint(o.noHeader)},
		{"node_field  ", fmt.Sprint(o.single)},
		{"node_format ", fmt.Sprint(o.single)},
		{"nodes       ", cmp.Or(hostlist.Fold(o.nodes), "n/a")},
		{"part_field  ", fmt.Sprint(!v.Has("format") && !v.Has("Format"))},
		{"partition   ", cmp.Or(strings.Join(o.partitions, ","), "n/a")},
		{"responding  ", fmt.Sprint(v.Has("responding"))},
		{"states      ", states},
		{"sort        ", given("sort", "(null)")},
		{"summarize   ", fmt.Sprint(v.Has("summarize"))},
		{"verbose     ", fmt.Sprint(v.Count("verbose"))},
	} {
		b.WriteString(line[0] + "= " + line[1] + "\n")
	}
	return b.String() + rule + "\n"
}
