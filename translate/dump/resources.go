package dump

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

func layout(j *status.Job) []nodeShare {
	if j.Layout == "" {
		return nil
	}
	var out []nodeShare
	for part := range strings.SplitSeq(j.Layout, ";") {
		f := append(strings.Split(part, " "), "", "", "")
		out = append(out, nodeShare{f[0], f[1], f[2], f[3]})
	}
	return out
}

func gresDetail(j *status.Job) []string {
	var out []string
	some := false
	for _, h := range layout(j) {
		out = append(out, h.gres)
		some = some || h.gres != ""
	}
	if !some {
		return nil
	}
	return out
}

// resources writes job_resources, which jobs with an allocation have.
func resources(w *writer, j *status.Job) {
	nodes := layout(j)
	if len(nodes) == 0 {
		return
	}
	if w.parser >= v41 {
		layeredResources(w, j, nodes)
		return
	}
	w.object("job_resources", func() {
		w.text("nodes", j.NodeList)
		w.integer("allocated_cores", int64(j.CPUs))
		if w.modern {
			w.integer("allocated_cpus", int64(j.CPUs))
		}
		w.integer("allocated_hosts", int64(len(nodes)))
		w.array("allocated_nodes", func() {
			for _, h := range nodes {
				w.object("", func() { allocatedNode(w, h) })
			}
		})
	})
}

// layeredResources writes job_resources in the form of v0.0.41 and later.
func layeredResources(w *writer, j *status.Job, nodes []nodeShare) {
	w.object("job_resources", func() {
		w.texts("select_type", "CPU", "MEMORY")
		w.object("nodes", func() {
			w.integer("count", int64(len(nodes)))
			w.texts("select_type", "AVAILABLE")
			w.text("list", j.NodeList)
			w.boolean("whole", false)
			w.array("allocation", func() {
				for i, h := range nodes {
					w.object("", func() { layeredNode(w, i, h) })
				}
			})
		})
		w.integer("cpus", int64(j.CPUs))
		w.number("threads_per_core", 0, false)
	})
}

// layeredNode writes one node of layeredResources.
func layeredNode(w *writer, index int, h nodeShare) {
	memory, _ := strconv.ParseInt(h.memory, 10, 64) // 0: unknown
	ids := cpus(h.cpus)
	w.integer("index", int64(index))
	w.text("name", h.node)
	w.object("cpus", func() {
		w.integer("count", int64(len(ids)))
		w.integer("used", int64(len(ids)))
	})
	w.object("memory", func() {
		w.integer("used", 0)
		w.integer("allocated", memory)
	})
	w.array("sockets", func() {
		w.object("", func() {
			w.integer("index", 0)
			w.array("cores", func() {
				for _, id := range ids {
					w.object("", func() {
						w.integer("index", int64(id))
						w.texts("status", "ALLOCATED")
					})
				}
			})
		})
	})
}

// allocatedNode writes one node of job_resources. CPUs are shown as cores of the first
// socket, as the row does not have the node's geometry.
func allocatedNode(w *writer, h nodeShare) {
	memory, _ := strconv.ParseInt(h.memory, 10, 64) // 0: unknown
	ids := cpus(h.cpus)
	w.object("sockets", func() {
		w.object("0", func() {
			w.object("cores", func() {
				for _, id := range ids {
					w.text(strconv.Itoa(id), "allocated")
				}
			})
		})
	})
	w.text("nodename", h.node)
	w.integer("cpus_used", int64(len(ids)))
	w.integer("memory_used", 0)
	w.integer("memory_allocated", memory)
}

// maxCPU is the maximum id that cpus returns.
const maxCPU = 1 << 16

// cpus returns the numbers in a list such as 0-3,8.
func cpus(list string) []int {
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(hi)
		}
		for n := first; err == nil && n <= last && n < maxCPU; n++ {
			out = append(out, n)
		}
	}
	return out
}
