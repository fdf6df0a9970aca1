package dump

import (
	"cmp"
	"strconv"

	"github.com/berth-hpc/berth/translate/status"
)

// laterNode writes a node of the REST API of later releases.
func (f *Form) laterNode(w *writer, n *status.Node) {
	w.text("architecture", n.Arch)
	w.text("burstbuffer_network_address", "")
	w.integer("boards", 1)
	w.number("boot_time", n.Boot, n.Boot != 0)
	w.text("cluster_name", f.Cluster)
	w.integer("cores", int64(n.Cores))
	w.integer("specialized_cores", 0)
	w.integer("cpu_binding", 0)
	w.integer("cpu_load", int64(n.Load))
	w.number("free_mem", n.FreeMem, n.FreeMem != 0)
	w.integer("cpus", int64(n.CPUs))
	w.integer("effective_cpus", int64(n.CPUs))
	w.text("specialized_cpus", "")
	w.object("energy", func() {
		for _, name := range []string{"average_watts", "base_consumed_energy", "consumed_energy"} {
			w.integer(name, 0)
		}
		w.number("current_watts", 0, false)
		w.integer("previous_consumed_energy", 0)
		w.integer("last_collected", 0)
	})
	w.object("external_sensors", func() {})
	w.text("extra", n.Extra)
	w.object("power", func() {})
	w.texts("features", n.Features...)
	if n.ActiveFeatures != nil {
		w.texts("active_features", n.ActiveFeatures...)
	} else {
		w.texts("active_features", n.Features...)
	}
	w.text("gres", n.GRES)
	w.text("gres_drained", "N/A")
	w.text("gres_used", n.GRESUsed)
	w.text("instance_id", "")
	w.text("instance_type", "")
	w.number("last_busy", n.LastBusy, n.LastBusy != 0)
	w.text("mcs_label", "")
	w.integer("specialized_memory", 0)
	w.text("name", n.Name)
	w.texts("next_state_after_reboot", cmp.Or(n.NextState, "INVALID"))
	w.text("address", n.Address)
	w.text("hostname", cmp.Or(n.Host, n.Name))
	w.texts("state", append([]string{n.State}, n.Flags...)...)
	f.laterNodeUse(w, n)
}

// laterNodeUse writes the second half of a node: its sizes, and what is in use.
func (f *Form) laterNodeUse(w *writer, n *status.Node) {
	w.text("operating_system", n.OS)
	w.text("owner", n.Owner)
	w.texts("partitions", n.Partitions...)
	w.integer("port", int64(n.Port))
	w.integer("real_memory", n.Memory)
	w.text("comment", n.Comment)
	w.text("reason", n.Reason)
	w.number("reason_changed_at", n.ReasonAt, n.ReasonAt != 0)
	w.text("reason_set_by_user", n.ReasonBy)
	w.number("resume_after", 0, false)
	w.text("reservation", n.Reservation)
	w.integer("alloc_memory", n.MemAlloc)
	w.integer("alloc_cpus", int64(n.CPUsAlloc))
	w.integer("alloc_idle_cpus", int64(n.CPUs-n.CPUsAlloc))
	w.text("tres_used", nodeTRES(n.CPUsAlloc, n.MemAlloc, "", n.GRESUsed))
	w.float("tres_weighted", float64(n.CPUsAlloc))
	start := cmp.Or(n.AgentStart, n.Boot)
	w.number("slurmd_start_time", start, start != 0)
	w.integer("sockets", int64(n.Sockets))
	w.integer("threads", int64(n.Threads))
	w.integer("temporary_disk", n.TmpDisk)
	w.integer("weight", int64(max(1, n.Weight)))
	w.text("tres", nodeTRES(n.CPUs, n.Memory, ",billing="+strconv.Itoa(int(n.CPUs)), n.GRES))
	w.text("version", n.Version)
}
