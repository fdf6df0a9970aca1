package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// need is what a job requests on each node.
type need struct {
	nodes  int
	cpus   int64
	memory int64 // MiB
	gpus   int64
	kind   string // of the GPUs, empty: any, or several
	whole  bool   // --exclusive
}

// gpuItem matches an item of a text of GRES that is about GPUs: gpu:a100:2, gres:gpu:2, gpu.
var gpuItem = regexp.MustCompile(
	`^(?:gres[:/])?gpu(?::([A-Za-z_][A-Za-z0-9_.-]*))?(?:[:=]([0-9]+))?(?:\(|$)`,
)

// gpusOf returns the number of GPUs in a text of GRES by their type, "" for those without.
func gpusOf(gres string) map[string]int64 {
	out := map[string]int64{}
	for item := range strings.SplitSeq(gres, ",") { // indexes such as (IDX:0,2) do not match
		m := gpuItem.FindStringSubmatch(item)
		if m == nil {
			continue
		}
		count := int64(1)
		if m[2] != "" {
			count, _ = strconv.ParseInt(m[2], 10, 64)
		}
		out[m[1]] += count
	}
	return out
}

// gpuCount returns the number of GPUs of a type, or of all if the type is empty.
func gpuCount(gpus map[string]int64, kind string) (n int64) {
	for k, count := range gpus {
		if kind == "" || k == kind {
			n += count
		}
	}
	return n
}

// need returns what the job requests on each node.
func (f *Facts) need() need {
	j := &f.Job
	n := need{nodes: int(max(1, j.Nodes)), whole: j.OverSubscribe == "NO"}
	n.cpus = max(1, (int64(j.CPUs)+int64(n.nodes)-1)/int64(n.nodes))
	n.memory = j.MinMemory
	if j.MemoryPerCPU {
		n.memory *= n.cpus
	}
	gpus := gpusOf(j.GRES)
	if n.gpus = gpuCount(gpus, ""); len(gpus) == 1 {
		for kind := range gpus {
			n.kind = kind
		}
	}
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

// text returns the need in words.
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

// minimumText returns the minimum size of whole nodes in words.
func (n *need) minimumText() string {
	if n.cpus <= 1 && n.memory == 0 && n.gpus == 0 {
		return ""
	}
	return ", with at least " + strings.Join(n.resourceTexts(), ", ")
}

// resourceTexts returns the resources of each node in words.
func (n *need) resourceTexts() []string {
	what := []string{countOf(n.cpus, "CPU")}
	if n.memory > 0 {
		what = append(what, string(format.AppendMemory(nil, n.memory, &format.Settings{}))+" of memory")
	}
	if n.gpus > 0 {
		gpu := "GPU"
		if n.kind != "" {
			gpu = printable.Escape(n.kind) + " GPU"
		}
		what = append(what, countOf(n.gpus, gpu))
	}
	return what
}

// countOf returns a number with a noun in the singular or plural.
func countOf(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return strconv.FormatInt(n, 10) + " " + name + "s"
}

// capacity is what a node has free, and whether the job fits on it.
type capacity struct {
	node                          *status.Node
	cpus, mem, gpus               int64 // free
	fitsEmpty, fitsNow, available bool  // if it were empty; now; not down or drained
}

// missing returns what the job needs and how many nodes have that.
func (f *Facts) missing() []string {
	n := f.need()
	out := []string{"It needs " + n.text() + "."}
	if f.Job.Features != "" {
		out[0] = "It needs " + n.text() + ", with " + printable.Escape(f.Job.Features) + "."
	}
	nodes := f.capacities(&n)
	if len(nodes) == 0 {
		return out
	}
	large, free, unavailable := 0, 0, 0
	for i := range nodes {
		switch r := &nodes[i]; {
		case r.fitsEmpty && !r.available:
			unavailable++
		case r.fitsEmpty && r.fitsNow:
			large++
			free++
		case r.fitsEmpty:
			large++
		}
	}
	switch {
	case large == 0 && unavailable == 0:
		out = append(out, fmt.Sprintf("None of the %d nodes it may use is that large.", len(nodes)))
	case free >= n.nodes:
		out = append(out, fmt.Sprintf("%d of %d nodes have that free now, but it is not its turn there.", free, large))
	default:
		out = append(out, fmt.Sprintf("%d of %d nodes that are large enough have that free now.", free, large))
	}
	if unavailable > 0 {
		out = append(out, fmt.Sprintf("%d more are large enough, but are down, drained or reserved.", unavailable))
	}
	if nearest := f.nearest(nodes, &n); nearest != "" && free < n.nodes {
		out = append(out, nearest)
	}
	return out
}

// capacities returns the nodes that the job may use.
func (f *Facts) capacities(n *need) []capacity {
	var out []capacity
	wanted := strings.Split(f.Job.Partition, ",")
	excluded := expand(f.Job.ExcNodes)
	for i := range f.Nodes {
		node := &f.Nodes[i]
		inPartition := slices.ContainsFunc(node.Partitions, func(p string) bool { return slices.Contains(wanted, p) })
		if !inPartition || slices.Contains(excluded, node.Name) || !hasFeatures(node, f.Job.Features) {
			continue
		}
		gpus, used := gpuCount(gpusOf(node.GRES), n.kind), gpuCount(gpusOf(node.GRESUsed), n.kind)
		r := capacity{
			node: node, cpus: int64(node.CPUs - node.CPUsAlloc), mem: node.Memory - node.MemAlloc, gpus: gpus - used,
		}
		r.fitsEmpty = int64(node.CPUs) >= n.cpus && node.Memory >= n.memory && gpus >= n.gpus
		// A node is shown without what a completing job still holds.
		r.fitsNow = r.cpus >= n.cpus && r.mem >= n.memory && r.gpus >= n.gpus && (!n.whole || node.CPUsAlloc == 0) &&
			!slices.Contains(node.Flags, "COMPLETING")
		r.available = f.isAvailable(node)
		out = append(out, r)
	}
	return out
}

// hasFeatures reports whether a node has the requested features. It assumes that if
// the request is an expression.
func hasFeatures(node *status.Node, features string) bool {
	return features == "" || strings.ContainsAny(features, "&|[*") || slices.Contains(node.Features, features)
}

// isAvailable reports whether jobs can start on a node: it is not down, drained or
// reserved for others.
func (f *Facts) isAvailable(node *status.Node) bool {
	if node.State == "DOWN" || node.State == "UNKNOWN" {
		return false
	}
	return !slices.ContainsFunc(node.Flags, func(flag string) bool {
		switch flag {
		case "DRAIN", "NOT_RESPONDING", "MAINTENANCE":
			return true
		case "RESERVED":
			return f.Job.Reservation == ""
		}
		return false
	})
}

// nearest returns a sentence about the node that lacks least of what the job needs.
func (f *Facts) nearest(nodes []capacity, n *need) string {
	var near []*capacity
	for i := range nodes {
		if r := &nodes[i]; r.fitsEmpty && r.available && !r.fitsNow {
			near = append(near, r)
		}
	}
	if len(near) == 0 {
		return ""
	}
	missing := func(r *capacity) float64 {
		if n.whole {
			return float64(r.node.CPUsAlloc)
		}
		return shortfall(r.cpus, n.cpus) + shortfall(r.mem, n.memory) + shortfall(r.gpus, n.gpus)
	}
	r := slices.MinFunc(near, func(a, b *capacity) int {
		return cmp.Or(cmp.Compare(missing(a), missing(b)), cmp.Compare(a.node.Name, b.node.Name))
	})
	name := printable.Escape(r.node.Name)
	if missing(r) == 0 && slices.Contains(r.node.Flags, "COMPLETING") {
		return fmt.Sprintf("The nearest is %s, where a job is completing.", name)
	}
	var has []string
	if n.whole {
		return fmt.Sprintf("The nearest is %s, with %d of %d CPUs in use%s.",
			name, r.node.CPUsAlloc, r.node.CPUs, f.firstEnd(r.node.Name))
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
	return fmt.Sprintf("The nearest is %s, with %s free%s.",
		name, strings.Join(has, " and "), f.firstEnd(r.node.Name))
}

// shortfall returns the fraction of want that is not free.
func shortfall(free, want int64) float64 {
	if want <= 0 || free >= want {
		return 0
	}
	return float64(want-max(0, free)) / float64(want)
}

// firstEnd returns a clause about the running job on a node that ends first.
func (f *Facts) firstEnd(node string) string {
	var first *status.Job
	for i := range f.Running {
		j := &f.Running[i]
		if j.End == 0 || j.TimeLimit < 0 || first != nil && j.End >= first.End {
			continue
		}
		if slices.Contains(expand(j.NodeList), node) {
			first = j
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("; %s there ends %s at the latest", format.JobID(first), f.formatTime(first.End))
}
