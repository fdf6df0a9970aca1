package app

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/control"
	queueapi "github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/sched/usersync"
	"github.com/berth-hpc/berth/translate/job"
)

// collector collects the metrics of a leader.
type collector struct {
	cluster *control.Cluster
	planner *planner.Planner
	rec     *acct.Recorder
	queue   *queueapi.API
	users   *usersync.Controller // nil: there is no directory
	seen    *observer
}

func newCollector(
	c *control.Cluster, p *planner.Planner, r *acct.Recorder, q *queueapi.API, u *usersync.Controller, o *observer,
) *collector {
	return &collector{c, p, r, q, u, o}
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
	pendingMetric = desc("pending_jobs", "Pending jobs by the reason why they wait, as squeue shows it.", "reason")
	accountMetric = desc("account_cpus", "Allocated CPUs by account.", "account")
	gresMetric    = desc("gres", "Generic resources of the pool, such as GPUs.", "name", "type", "use")
	requestMetric = desc("requests_total", "Requests to the queue API by type, since midnight.", "request")
	latencyMetric = desc("request_seconds_total", "Time in which they were answered, since midnight.", "request")
	planMetric    = desc("plan_seconds", "How long the newest plan took.")
	backlogMetric = desc("accounting_backlog", "Jobs whose records wait to be written.")
	awayMetric    = desc("accounting_away", "1 while the accounting database does not answer.")

	directoryMetric = desc("directory_last_success_timestamp_seconds",
		"When the source of users was last read completely.", "source")
	directoryUsersMetric    = desc("directory_users", "Enabled users of the source.", "source")
	directoryProblemsMetric = desc("directory_problems", "What is wrong with users, as berth doctor lists it.")
)

func (c *collector) collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.jobs(gauge)
	c.requests(to)
	c.nodes(gauge)
	c.pools(gauge)
	c.directory(gauge)
	for _, p := range c.planner.PartitionsView() {
		c.seen.expect(p.Name)
	}
	c.seen.collect(to)
	gauge(planMetric, c.planner.PlanDuration().Seconds())
	gauge(backlogMetric, float64(c.rec.Backlog()))
	gauge(awayMetric, truth(c.rec.Err() != nil))
}

// directory adds how the sources of users stand.
func (c *collector) directory(gauge addGauge) {
	if c.users == nil {
		return
	}
	r := c.users.Report()
	for i := range r.Sources {
		s := &r.Sources[i]
		gauge(directoryUsersMetric, float64(s.Users), s.Name)
		if s.Since != nil {
			gauge(directoryMetric, float64(s.Since.Unix()), s.Name)
		}
	}
	gauge(directoryProblemsMetric, float64(len(r.Problems)))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// addGauge adds a sample.
type addGauge = func(d *prometheus.Desc, v float64, labels ...string)

// jobs adds the numbers of jobs by state and partition, of pending jobs by reason, and the
// CPUs of each account.
func (c *collector) jobs(gauge addGauge) {
	states, reasons, accounts := map[[2]string]float64{}, map[string]float64{}, map[string]float64{}
	planned, _ := c.planner.Newest()
	for _, b := range c.cluster.Jobs.List() {
		state, partition := b.Status.State, b.Status.Partition
		if state == "" {
			state = v1alpha1.StatePending
		}
		if partition == "" {
			partition = b.Spec.Partition
		}
		states[[2]string{state, partition}]++
		switch {
		case state == v1alpha1.StatePending:
			reasons[pendingReason(b, planned)]++
		case b.Status.Allocation != nil && !b.Status.HasOutcome():
			for i := range b.Status.Allocation.Nodes {
				accounts[b.Spec.Job.Account] += float64(b.Status.Allocation.Nodes[i].CPUs)
			}
		}
	}
	for k, n := range states {
		gauge(jobsMetric, n, k[0], k[1])
	}
	for reason, n := range reasons {
		gauge(pendingMetric, n, reason)
	}
	for account, n := range accounts {
		gauge(accountMetric, n, account)
	}
}

// pendingReason returns why a pending job waits, without the nodes that some reasons name.
func pendingReason(b *v1alpha1.BatchJob, planned map[int64]control.Planned) string {
	if r := job.HeldReason(b.Spec.Job.Hold); r != "" {
		return r
	}
	reason, _, _ := strings.Cut(cmp.Or(planned[b.Spec.JobID].Reason, b.Status.Reason, "None"), ",")
	return reason
}

// requests adds the counters of requests to the queue API.
func (c *collector) requests(to chan<- prometheus.Metric) {
	for _, r := range c.queue.RequestStats() {
		to <- prometheus.MustNewConstMetric(requestMetric, prometheus.CounterValue, float64(r.Count), r.Name)
		to <- prometheus.MustNewConstMetric(latencyMetric, prometheus.CounterValue, float64(r.Total)/1e6, r.Name)
	}
}

func (c *collector) nodes(gauge addGauge) {
	states := map[string]float64{}
	total, allocated := map[[2]string]float64{}, map[[2]string]float64{}
	var cpus, used, memory, held float64
	for _, n := range c.planner.NodesView() {
		state := n.State
		for _, f := range n.Flags {
			if f == "DRAIN" {
				state = f
			}
		}
		states[state]++
		countGRES(total, n.GRES)
		countGRES(allocated, n.GRESUsed)
		cpus, used = cpus+float64(n.CPUs), used+float64(n.CPUsAlloc)
		memory, held = memory+float64(n.Memory)*(1<<20), held+float64(n.MemAlloc)*(1<<20)
	}
	for s, n := range states {
		gauge(nodesMetric, n, s)
	}
	for k, n := range total {
		gauge(gresMetric, n, k[0], k[1], "total")
		gauge(gresMetric, allocated[k], k[0], k[1], "allocated")
	}
	gauge(cpusMetric, cpus, "total")
	gauge(cpusMetric, used, "allocated")
	gauge(memoryMetric, memory, "total")
	gauge(memoryMetric, held, "allocated")
}

// countGRES adds the counts in a list such as gpu:a100:4,fpga:1 by name and type.
func countGRES(to map[[2]string]float64, list string) {
	for item := range strings.SplitSeq(list, ",") {
		item, _, _ = strings.Cut(item, "(")
		parts := strings.Split(item, ":")
		n, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
		if err != nil || len(parts) < 2 {
			continue
		}
		key := [2]string{parts[0], ""}
		if len(parts) > 2 {
			key[1] = parts[1]
		}
		to[key] += float64(n)
	}
}
