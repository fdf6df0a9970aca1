package dump

import (
	"cmp"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Partitions returns the document of partitions in the REST API of later releases.
func Partitions(f Form, list []status.Partition) []byte {
	return f.document(func(w *writer) {
		w.array("partitions", func() {
			for i := range list {
				w.object("", func() { f.partition(w, &list[i], hostlist.Fold(list[i].Nodes)) })
			}
		})
		w.number("last_update", f.Now, true)
	})
}

// partition writes a partition of the later documents; folded is its node list.
func (f *Form) partition(w *writer, p *status.Partition, folded string) {
	w.object("nodes", func() {
		w.text("allowed_allocation", "")
		w.text("configured", folded)
		w.integer("total", int64(len(p.Nodes)))
	})
	w.object("accounts", func() {
		w.text("allowed", strings.Join(p.AllowAccounts, ","))
		w.text("deny", strings.Join(p.DenyAccounts, ","))
	})
	w.object("groups", func() { w.text("allowed", strings.Join(p.AllowGroups, ",")) })
	w.object("qos", func() {
		w.text("allowed", strings.Join(p.AllowQOS, ","))
		w.text("deny", strings.Join(p.DenyQOS, ","))
		w.text("assigned", p.QOS)
	})
	w.text("alternate", "")
	w.object("tres", func() {
		w.text("billing_weights", "")
		w.text("configured", "")
	})
	w.text("cluster", f.Cluster)
	w.object("cpus", func() {
		w.integer("task_binding", 0)
		w.integer("total", 0)
	})
	w.object("defaults", func() {
		memory(w, p.DefMemPerCPU, p.DefMemPerNode)
		w.number("time", int64(p.DefaultTime), p.DefaultTime > 0)
		w.text("job", "")
	})
	w.integer("grace_time", int64(p.GraceTime))
	w.object("maximums", func() { maximums(w, p) })
	w.object("minimums", func() { w.integer("nodes", int64(p.MinNodes)) })
	w.text("name", p.Name)
	w.text("node_sets", "")
	w.object("priority", func() {
		w.integer("job_factor", int64(p.PriorityJobFactor))
		w.integer("tier", int64(p.PriorityTier))
	})
	w.object("timeouts", func() {
		w.number("resume", 0, false)
		w.number("suspend", 0, false)
	})
	w.object("partition", func() { w.texts("state", p.State) })
	w.number("suspend_time", 0, false)
}

func maximums(w *writer, p *status.Partition) {
	w.limit("cpus_per_node", unlimited(p.MaxCPUs))
	w.limit("cpus_per_socket", -1)
	memory(w, p.MaxMemPerCPU, p.MaxMemPerNode)
	w.limit("nodes", unlimited(p.MaxNodes))
	w.integer("shares", 1)
	w.object("oversubscribe", func() {
		w.integer("jobs", 1)
		w.array("flags", func() {})
	})
	w.limit("time", unlimited(p.MaxTime))
	w.number("over_time_limit", int64(min(p.OverTimeLimit, infinite16)), p.OverTimeLimit > 0)
}

// infinite16 is Slurm's value for no limit in 16 bits.
const infinite16 = 1<<16 - 1

// memory writes a default or a limit in MiB per CPU or per node; 0: none.
func memory(w *writer, cpu, node int64) {
	w.integer("memory_per_cpu", cmp.Or(cpu, node))
	w.number("partition_memory_per_cpu", cpu, cpu != 0)
	w.number("partition_memory_per_node", node, node != 0)
}
