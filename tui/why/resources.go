package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// need is what a job wants on each node.
type need struct {
	nodes  int
	cpus   int64
	memory int64 // MiB
	gpus   int64
	kind   string // of the GPUs, empty: any
	whole  bool   // --exclusive
}

var gpuRequest = regexp.MustCompile(`(?:^|,)(?:gres[:/])?gpu(?::([A-Za-z_][A-Za-z0-9_.-]*))?(?:[:=]([0-9]+))?(?:\(|,|$)`)

// gpusOf reads a GPU's type and number out of a text of GRES: gpu:a100:2,
// gres:gpu:2, gpu.
func gpusOf(gres string) (kind string, n int64) {
	for _, m := range gpuRequest.FindAllStringSubmatch(gres, -1) {
		count := int64(1)
		if m[2] != "" {
			count, _ = strconv.ParseInt(m[2], 10, 64)
		}
		kind, n = m[1], n+count
	}
	return kind, n
}

func (f *Facts) need() need {
	j := &f.Job
	n := need{nodes: int(max(1, j.Nodes)), whole: j.OverSubscribe == "NO"}
	n.cpus = max(1, (int64(j.CPUs)+int64(n.nodes)-1)/int64(n.nodes))
	n.memory = j.MinMemory
	if j.MemoryPerCPU {
		n.memory *= n.cpus
	}
	n.kind, n.gpus = gpusOf(j.GRES)
	if n.gpus == 0 {
		for item := range strings.SplitSeq(j.TRES, ",") {
			if v, ok := strings.CutPrefix(item, "gres/gpu="); ok {
				total, _ := strconv.ParseInt(v, 10, 64)
				n.gpus = (total + int64(n.nodes) - 1) / int64(n.nodes)
			}
		}
	}
	return n
}

// text says a need in words.
func (n *need) text() string {
	if n.whole && n.nodes == 1 {
		return "a whole node for itself (--exclusive)" + n.minimumText()
	} else if n.whole {
		return fmt.Sprintf("%d whole nodes for itself (--exclusive)%s", n.nodes, n.minimumText())
	}
	what := n.resourceTexts()
	if n.nodes == 1 {
		return strings.Join(what, ", ") + " on one node"
	}
	return fmt.Sprintf("%s on each of %d nodes", strings.Join(what, ", "), n.nodes)
}

// sized says how large whole nodes must be.
func (n *need) minimumText() string {
	if n.cpus <= 1 && n.memory == 0 && n.gpus == 0 {
		return ""
	}
	return ", with at least " + strings.Join(n.resourceTexts(), ", ")
}

// what is wanted of each node.
func (n *need) resourceTexts() []string {
	what := []string{countOf(n.cpus, "CPU")}
	if n.memory > 0 {
		what = append(what, string(format.AppendMemory(nil, n.memory, &format.Settings{}))+" of memory")
	}
	if n.gpus > 0 {
		gpu := "GPU"
		if n.kind != "" {
			gpu = format.Escape(n.kind) + " GPU"
		}
		what = append(what, countOf(n.gpus, gpu))
	}
	return what
}

func countOf(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return strconv.FormatInt(n, 10) + " " + name + "s"
}

// room is what a node has left of what a job wants.
type capacity struct {
	node                          *status.Node
	cpus, mem, gpus               int64 // free
	fitsEmpty, fitsNow, available bool  // if it were empty; now; not down or drained
}

// missing compares what the job needs with what the nodes have.
func (f *Facts) missing() []string {
	n := f.need()
	out := []string{"It needs " + n.text() + "."}
	if f.Job.Features != "" {
		out[0] = "It needs " + n.text() + ", with " + format.Escape(f.Job.Features) + "."
	}
	rooms := f.capacities(&n)
	if len(rooms) == 0 {
		return out
	}
	could, can, away := 0, 0, 0
	for i := range rooms {
		switch r := &rooms[i]; {
		case r.fitsEmpty && !r.available:
			away++
		case r.fitsEmpty && r.fitsNow:
			could, can = could+1, can+1
		case r.fitsEmpty:
			could++
		}
	}
	switch {
	case could == 0 && away == 0:
		out = append(out, fmt.Sprintf("None of the %d nodes it may use is that large.", len(rooms)))
	case can >= n.nodes:
		out = append(out, fmt.Sprintf("%d of %d nodes have that free now, but it is not its turn there.", can, could))
	default:
		out = append(out, fmt.Sprintf("%d of %d nodes that are large enough have that free now.", can, could))
	}
	if away > 0 {
		out = append(out, fmt.Sprintf("%d more would do, but are down, drained or reserved.", away))
	}
	if best := f.nearest(rooms, &n); best != "" && can < n.nodes {
		out = append(out, best)
	}
	return out
}

// rooms looks at the nodes of the job's partitions.
func (f *Facts) capacities(n *need) []capacity {
	var out []capacity
	wanted := strings.Split(f.Job.Partition, ",")
	excluded := expand(f.Job.ExcNodes)
	for i := range f.Nodes {
		node := &f.Nodes[i]
		if !slices.ContainsFunc(node.Partitions, func(p string) bool { return slices.Contains(wanted, p) }) || slices.Contains(excluded, node.Name) {
			continue
		}
		kind, gpus := gpusOf(node.GRES)
		_, used := gpusOf(node.GRESUsed)
		if n.kind != "" && kind != n.kind {
			gpus, used = 0, 0
		}
		if f.Job.Features != "" && !slices.Contains(node.Features, f.Job.Features) && !strings.ContainsAny(f.Job.Features, "&|[*") {
			continue
		}
		r := capacity{node: node, cpus: int64(node.CPUs - node.CPUsAlloc), mem: node.Memory - node.MemAlloc, gpus: gpus - used}
		r.fitsEmpty = int64(node.CPUs) >= n.cpus && node.Memory >= n.memory && gpus >= n.gpus
		r.fitsNow = r.cpus >= n.cpus && r.mem >= n.memory && r.gpus >= n.gpus && (!n.whole || node.CPUsAlloc == 0)
		r.available = node.State != "DOWN" && node.State != "UNKNOWN" && !slices.ContainsFunc(node.Flags, func(s string) bool {
			return s == "DRAIN" || s == "NOT_RESPONDING" || s == "MAINTENANCE" || s == "RESERVED" && f.Job.Reservation == ""
		})
		out = append(out, r)
	}
	return out
}

// best tells of the node that comes nearest.
func (f *Facts) nearest(rooms []capacity, n *need) string {
	var near []*capacity
	for i := range rooms {
		if r := &rooms[i]; r.fitsEmpty && r.available && !r.fitsNow {
			near = append(near, r)
		}
	}
	if len(near) == 0 {
		return ""
	}
	short := func(r *capacity) float64 {
		if n.whole {
			return float64(r.node.CPUsAlloc)
		}
		return shortfall(r.cpus, n.cpus) + shortfall(r.mem, n.memory) + shortfall(r.gpus, n.gpus)
	}
	r := slices.MinFunc(near, func(a, b *capacity) int {
		if c := cmp.Compare(short(a), short(b)); c != 0 {
			return c
		}
		return cmp.Compare(a.node.Name, b.node.Name)
	})
	var has []string
	if n.whole {
		return fmt.Sprintf("The nearest is %s, with %d of %d CPUs in use%s.", format.Escape(r.node.Name), r.node.CPUsAlloc, r.node.CPUs, f.firstEnd(r.node.Name))
	}
	if r.gpus < n.gpus {
		has = append(has, fmt.Sprintf("%d of %s", r.gpus, countOf(n.gpus, "GPU")))
	}
	if r.cpus < n.cpus {
		has = append(has, fmt.Sprintf("%d of %s", r.cpus, countOf(n.cpus, "CPU")))
	}
	if r.mem < n.memory {
		has = append(has, fmt.Sprintf("%s of %s of memory", format.AppendMemory(nil, max(0, r.mem), &format.Settings{}),
			format.AppendMemory(nil, n.memory, &format.Settings{})))
	}
	return fmt.Sprintf("The nearest is %s, with %s free%s.", format.Escape(r.node.Name), strings.Join(has, " and "), f.firstEnd(r.node.Name))
}

// lack is the part of what is wanted that is missing.
func shortfall(free, want int64) float64 {
	if want <= 0 || free >= want {
		return 0
	}
	return float64(want-max(0, free)) / float64(want)
}

// frees tells which running job on a node ends first.
func (f *Facts) firstEnd(node string) string {
	var first *status.Job
	for i := range f.Running {
		j := &f.Running[i]
		if j.End > 0 && j.TimeLimit >= 0 && (first == nil || j.End < first.End) && slices.Contains(expand(j.NodeList), node) {
			first = j
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("; %s there ends %s at the latest", format.JobID(first), f.formatTime(first.End))
}
