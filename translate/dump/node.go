package dump

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Nodes returns a document with one entry for each node: that of sinfo --json in the form
// of 22.05, and of the REST API in the later forms.
func Nodes(f Form, nodes []status.Node) []byte {
	return f.document(func(w *writer) {
		w.array("nodes", func() {
			for i := range nodes {
				w.object("", func() {
					if w.modern {
						f.laterNode(w, &nodes[i])
					} else {
						node(w, &nodes[i])
					}
				})
			}
		})
		if w.modern {
			w.number("last_update", f.Now, true)
		}
	})
}

// Sinfo returns the document of sinfo --json in the form f: every node for 22.05, or
// nodes by partition for later releases.
func Sinfo(f Form, parts []status.Partition, nodes []status.Node) []byte {
	if f.Modern() {
		return Groups(f, parts, nodes)
	}
	return Nodes(f, nodes)
}

func node(w *writer, n *status.Node) {
	features := strings.Join(n.Features, ",")
	active := features
	if n.ActiveFeatures != nil {
		active = strings.Join(n.ActiveFeatures, ",")
	}
	w.text("architecture", n.Arch)
	w.text("burstbuffer_network_address", "")
	w.integer("boards", 1)
	w.integer("boot_time", n.Boot)
	w.text("comment", n.Comment)
	w.integer("cores", int64(n.Cores))
	w.integer("cpu_binding", 0)
	w.integer("cpu_load", int64(n.Load))
	w.text("extra", n.Extra)
	w.integer("free_memory", n.FreeMem)
	w.integer("cpus", int64(n.CPUs))
	w.integer("last_busy", n.LastBusy)
	w.text("features", features)
	w.text("active_features", active)
	w.text("gres", n.GRES)
	w.text("gres_drained", "N/A")
	w.text("gres_used", n.GRESUsed)
	w.text("mcs_label", "")
	w.text("name", n.Name)
	w.text("next_state_after_reboot", cmp.Or(strings.ToLower(n.NextState), "invalid"))
	w.text("address", n.Address)
	w.text("hostname", cmp.Or(n.Host, n.Name))
	w.text("state", strings.ToLower(n.State))
	w.texts("state_flags", n.Flags...)
	w.texts("next_state_after_reboot_flags")
	w.text("operating_system", n.OS)
	textOrNull(w, "owner", n.Owner)
	w.texts("partitions", n.Partitions...)
	w.integer("port", int64(n.Port))
	w.integer("real_memory", n.Memory)
	w.text("reason", n.Reason)
	w.integer("reason_changed_at", n.ReasonAt)
	textOrNull(w, "reason_set_by_user", n.ReasonBy)
	w.integer("slurmd_start_time", cmp.Or(n.AgentStart, n.Boot))
	w.integer("sockets", int64(n.Sockets))
	w.integer("threads", int64(n.Threads))
	w.integer("temporary_disk", n.TmpDisk)
	w.integer("weight", int64(max(1, n.Weight)))
	w.text("tres", nodeTRES(n.CPUs, n.Memory, ",billing="+strconv.Itoa(int(n.CPUs)), n.GRES))
	w.text("slurmd_version", n.Version)
	w.integer("alloc_memory", n.MemAlloc)
	w.integer("alloc_cpus", int64(n.CPUsAlloc))
	w.integer("idle_cpus", int64(n.CPUs-n.CPUsAlloc))
	textOrNull(w, "tres_used", nodeTRES(n.CPUsAlloc, n.MemAlloc, "", n.GRESUsed))
	w.float("tres_weighted", float64(n.CPUsAlloc))
}

func textOrNull(w *writer, key, text string) {
	if text == "" {
		w.null(key)
		return
	}
	w.text(key, text)
}

// nodeTRES returns cpu=..,mem=..,billing=..,gres/gpu=.., or "" if all are 0. An empty
// billing is omitted.
func nodeTRES(cpus int32, mib int64, billing, gres string) string {
	if cpus == 0 && mib == 0 {
		return ""
	}
	text := "cpu=" + strconv.Itoa(int(cpus)) + ",mem=" + strconv.FormatInt(mib, 10) + "M" + billing
	for g := range strings.SplitSeq(gres, ",") {
		g, _, _ = strings.Cut(g, "(")
		first, last := strings.IndexByte(g, ':'), strings.LastIndexByte(g, ':')
		if first > 0 && g[last+1:] != "0" {
			text += ",gres/" + g[:first] + "=" + g[last+1:]
		}
	}
	return text
}

// Groups returns the document of sinfo --json of the data parsers: one entry for the
// nodes of a partition with the same values.
func Groups(f Form, parts []status.Partition, nodes []status.Node) []byte {
	byName := map[string]*status.Node{}
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	return f.document(func(w *writer) {
		w.array("sinfo", func() {
			for i := range parts {
				folded := hostlist.Fold(parts[i].Nodes)
				for _, name := range parts[i].Nodes {
					if n := byName[name]; n != nil {
						w.object("", func() { f.group(w, &parts[i], folded, n) })
					}
				}
			}
		})
	})
}

func (f *Form) group(w *writer, p *status.Partition, folded string, n *status.Node) {
	w.integer("port", int64(n.Port))
	w.object("node", func() { w.texts("state", append([]string{n.State}, n.Flags...)...) })
	w.object("nodes", func() {
		idle, alloc := int64(1), int64(0)
		if n.State == "MIXED" || n.State == "ALLOCATED" {
			idle, alloc = 0, 1
		}
		other := int64(0)
		if n.State == "DOWN" || slices.ContainsFunc(n.Flags, func(f string) bool { return f != "CLOUD" }) {
			idle, alloc, other = 0, 0, 1
		}
		w.integer("allocated", alloc)
		w.integer("idle", idle)
		w.integer("other", other)
		w.integer("total", 1)
		w.texts("hostnames", cmp.Or(n.Host, n.Name))
		w.texts("addresses", n.Address)
		w.texts("nodes", n.Name)
	})
	groupSizes(w, p, n)
	w.object("reason", func() {
		w.text("description", n.Reason)
		w.number("time", n.ReasonAt, true)
		w.text("user", n.ReasonBy)
	})
	w.text("cluster", f.Cluster)
	w.text("comment", n.Comment)
	w.text("extra", n.Extra)
	w.text("reservation", n.Reservation)
	w.object("partition", func() { f.partition(w, p, folded) })
}

func span(w *writer, key string, n int64) {
	w.object(key, func() {
		w.integer("minimum", n)
		w.integer("maximum", n)
	})
}

func groupSizes(w *writer, p *status.Partition, n *status.Node) {
	w.object("cpus", func() {
		w.integer("allocated", int64(n.CPUsAlloc))
		w.integer("idle", int64(n.CPUs-n.CPUsAlloc))
		w.integer("other", 0)
		w.integer("total", int64(n.CPUs))
		w.integer("minimum", int64(n.CPUs))
		w.integer("maximum", int64(n.CPUs))
		w.object("load", func() {
			w.integer("minimum", int64(n.Load))
			w.integer("maximum", int64(n.Load))
		})
		w.object("per_node", func() { w.limit("max", unlimited(p.MaxCPUs)) })
	})
	w.object("memory", func() {
		w.integer("minimum", n.Memory)
		w.integer("maximum", n.Memory)
		w.object("free", func() {
			w.number("minimum", n.FreeMem, n.FreeMem != 0)
			w.number("maximum", n.FreeMem, n.FreeMem != 0)
		})
		w.integer("allocated", n.MemAlloc)
	})
	span(w, "disk", n.TmpDisk)
	span(w, "weight", int64(max(1, n.Weight)))
	span(w, "sockets", int64(n.Sockets))
	span(w, "cores", int64(n.Cores))
	span(w, "threads", int64(n.Threads))
	w.object("features", func() {
		w.text("total", strings.Join(n.Features, ","))
		w.text("active", strings.Join(n.Features, ","))
	})
	w.object("gres", func() {
		w.text("total", n.GRES)
		w.text("used", n.GRESUsed)
	})
}

// unlimited returns n, or -1 for 0, which means no limit in a Partition.
func unlimited(n int32) int64 {
	if n == 0 {
		return -1
	}
	return int64(n)
}
