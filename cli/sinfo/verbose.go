package sinfo

import (
	"cmp"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

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
	given := func(name string) string { return cmp.Or(v.Get(name), "(null)") }
	states := given("states")
	if o.reasons && !v.Has("states") {
		states = "down"
	}
	text, _ := o.usual(v.Has("summarize"))
	return format.SettingsBlock(12, [][2]any{
		{"dead", v.Has("dead")},
		{"exact", format.Digit(o.exact)},
		{"filtering", o.keep != nil || o.states != nil || len(o.nodes) > 0 || len(o.partitions) > 0},
		{"format", cmp.Or(v.Get("Format"), v.Get("format"), named[text])},
		{"iterate", int(o.every / time.Second)},
		{"long", o.long},
		{"no_header", o.noHeader},
		{"node_field", o.single},
		{"node_format", o.single},
		{"nodes", cmp.Or(hostlist.Fold(o.nodes), "n/a")},
		{"part_field", !v.Has("format") && !v.Has("Format")},
		{"partition", cmp.Or(strings.Join(o.partitions, ","), "n/a")},
		{"responding", v.Has("responding")},
		{"states", states},
		{"sort", given("sort")},
		{"summarize", v.Has("summarize")},
		{"verbose", v.Count("verbose")},
	}) + "\n"
}
