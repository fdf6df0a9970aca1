package srun

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// With --verbose, these functions report the progress of a step in Slurm's lines.

// detail prints a line with --verbose.
func (r *run) detail(format string, args ...any) {
	if r.parsed.Client.Verbose > 0 {
		r.o.printf(format, args...)
	}
}

// reportOptions prints the options of each part of a step in an existing job, and the nodes of
// the job.
func (o *Options) reportOptions(ctx context.Context, parts []*option.Parsed) {
	if parts[0].Client.Verbose == 0 {
		return
	}
	dir, err := o.p.Dir()
	if err != nil {
		dir = "."
	}
	for _, p := range parts {
		fmt.Fprint(o.p.Err, p.Verbose(dir))
	}
	o.reportJob(ctx, parts[0].Step.JobID)
}

// reportJob prints the nodes of a job in a line for each component: from the environment if
// srun runs in the job, otherwise from the cluster. It prints nothing for a job that is not
// found, which the request for the step reports.
func (o *Options) reportJob(ctx context.Context, id int64) {
	own := o.p.Env("SLURM_JOB_ID") == strconv.FormatInt(id, 10)
	size, err := strconv.Atoi(o.p.Env("SLURM_HET_SIZE"))
	switch {
	case own && err == nil && size > 0:
		for i := range size {
			o.reportFromEnv("_HET_GROUP_" + strconv.Itoa(i))
		}
	case own:
		o.reportFromEnv("")
	default:
		cluster, err := o.cluster()
		if err != nil {
			return
		}
		_ = cluster.Events(ctx, id, false, func(e *wire.JobEvent) bool {
			if e.Welcome != nil {
				o.reportAllocation(e.Welcome)
			}
			return false
		})
	}
}

// reportFromEnv prints the nodes that the variables with the given suffix name.
func (o *Options) reportFromEnv(suffix string) {
	nodes, cpus := o.p.Env("SLURM_JOB_NODELIST"+suffix), o.p.Env("SLURM_JOB_CPUS_PER_NODE"+suffix)
	names, err := hostlist.Expand(nodes)
	if err != nil || nodes == "" || cpus == "" {
		return
	}
	o.printf("jobid %s: nodes(%d):`%s', cpu counts: %s",
		o.p.Env("SLURM_JOB_ID"+suffix), len(names), nodes, eachCounted(cpus))
}

// eachCounted returns counts such as 2(x3),1 with the number of nodes after each.
func eachCounted(folded string) string {
	counts := strings.Split(folded, ",")
	for i, c := range counts {
		if !strings.HasSuffix(c, ")") {
			counts[i] = c + "(x1)"
		}
	}
	return strings.Join(counts, ",")
}

// reportAllocation prints the nodes of a job that srun has allocated, in a line for each
// component.
func (o *Options) reportAllocation(w *wire.Welcome) {
	components := w.Het
	if len(components) == 0 {
		components = []wire.HetComponent{{JobID: w.JobID, Hosts: w.Hosts}}
	}
	for _, c := range components {
		names, cpus := make([]string, len(c.Hosts)), make([]int32, len(c.Hosts))
		for i, h := range c.Hosts {
			names[i], cpus[i] = h.Name, h.CPUs
		}
		o.printf("jobid %d: nodes(%d):`%s', cpu counts: %s",
			c.JobID, len(names), hostlist.Fold(names), eachCounted(env.Folded(cpus)))
	}
}

// reportLaunch prints the tasks of each node. The caller holds all.mu.
func (r *run) reportLaunch() {
	if r.parsed.Client.Verbose == 0 {
		return
	}
	r.detail("launch/slurm: launch_p_step_launch: CpuBindType=%s", bindType(r.parsed.Step.CPUBind))
	on := make([][]int, len(r.created.Nodes))
	for t, node := range r.created.TaskNode {
		if int(node) < len(on) {
			on[node] = append(on[node], t)
		}
	}
	for i, tasks := range on {
		list := affinity.FormatCPUList(tasks)
		if len(tasks) > 1 {
			list = "[" + list + "]"
		}
		r.detail("launching StepId=%s on host %s, %d tasks: %s", r.id(), r.created.Nodes[i], len(tasks), list)
	}
}

func bindType(given string) string {
	if given == "" {
		return "(null type)"
	}
	return strings.TrimPrefix(given, "verbose,")
}

// reportStarted prints tasks that were started.
func (r *run) reportStarted(f *step.Frame) {
	var s step.Started
	if r.parsed.Client.Verbose == 0 || f.Decode(&s) != nil {
		return
	}
	if s.Node < 0 || int(s.Node) >= len(r.created.Nodes) {
		return
	}
	r.detail("launch/slurm: _task_start: Node %s, %d tasks started", r.created.Nodes[s.Node], len(s.Tasks))
}

// reportExit prints tasks that have ended. The caller holds all.mu.
func (r *run) reportExit(e *step.Exit) {
	if r.parsed.Client.Verbose == 0 || len(e.Tasks) == 0 || int(e.Tasks[0]) >= len(r.exits.node) {
		return
	}
	ids := make([]int, len(e.Tasks))
	for i, t := range e.Tasks {
		ids[i] = int(t)
	}
	r.detail("launch/slurm: _task_finish: Received task exit notification for %s of StepId=%s (status=0x%04x).",
		counted(len(ids)), r.id(), e.Status)
	if e.Status == 0 {
		node := r.created.Nodes[r.exits.node[e.Tasks[0]]]
		r.detail("launch/slurm: _task_finish: %s: %s: Completed", node, taskList(ids))
	}
}

func counted(tasks int) string {
	if tasks == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", tasks)
}
