package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/planner"
)

// collector collects the metrics of a leader.
type collector struct {
	cluster *control.Cluster
	planner *planner.Planner
	rec     *acct.Recorder
}

func newCollector(c *control.Cluster, p *planner.Planner, r *acct.Recorder) *collector {
	return &collector{c, p, r}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("berth_"+name, help, labels, nil)
}

// Names and labels are a contract: the dashboard and the alerts of the chart
// use them, and those of sites.
var (
	jobsMetric    = desc("jobs", "Jobs in the queue; an array counts once until its tasks start.", "state", "partition")
	nodesMetric   = desc("nodes", "Nodes of the pool by state.", "state")
	cpusMetric    = desc("cpus", "CPUs of the pool.", "use")
	memoryMetric  = desc("memory_bytes", "Memory of the pool.", "use")
	planMetric    = desc("plan_seconds", "How long the newest plan took.")
	backlogMetric = desc("accounting_backlog", "Jobs whose records wait to be written.")
	awayMetric    = desc("accounting_away", "1 while the accounting database does not answer.")
)

func (c *collector) collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for k, n := range c.jobs() {
		gauge(jobsMetric, n, k[0], k[1])
	}
	c.nodes(gauge)
	gauge(planMetric, c.planner.PlanDuration().Seconds())
	gauge(backlogMetric, float64(c.rec.Backlog()))
	gauge(awayMetric, truth(c.rec.Err() != nil))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// jobs returns the number of jobs by state and partition.
func (c *collector) jobs() map[[2]string]float64 {
	out := map[[2]string]float64{}
	for _, b := range c.cluster.Jobs.List() {
		state, partition := b.Status.State, b.Status.Partition
		if state == "" {
			state = v1alpha1.StatePending
		}
		if partition == "" {
			partition = b.Spec.Partition
		}
		out[[2]string{state, partition}]++
	}
	return out
}

func (c *collector) nodes(gauge func(*prometheus.Desc, float64, ...string)) {
	states := map[string]float64{}
	var cpus, used, memory, held float64
	for _, n := range c.planner.NodesView() {
		state := n.State
		for _, f := range n.Flags {
			if f == "DRAIN" {
				state = f
			}
		}
		states[state]++
		cpus, used = cpus+float64(n.CPUs), used+float64(n.CPUsAlloc)
		memory, held = memory+float64(n.Memory)*(1<<20), held+float64(n.MemAlloc)*(1<<20)
	}
	for s, n := range states {
		gauge(nodesMetric, n, s)
	}
	gauge(cpusMetric, cpus, "total")
	gauge(cpusMetric, used, "allocated")
	gauge(memoryMetric, memory, "total")
	gauge(memoryMetric, held, "allocated")
}
