package option

import (
	"fmt"
	"math"
	"slices"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
)

// gpuCounts are the GPUs of one type that a job requests, by scope; 0: not given.
type gpuCounts struct{ job, node, socket, task int64 }

// checkGPUCounts returns an error for GPU counts of a job, its nodes, sockets and tasks
// that contradict each other. A step's counts are checked against its job instead.
func checkGPUCounts(p *Parsed) error {
	if p.Step.JobID != 0 {
		return nil
	}
	s := &p.Job.Shape
	tasksImplied := !p.Has("gpus-per-task") || p.fixesNodes() || p.Has("ntasks-per-node")
	for _, c := range gpuCountsOf(s) {
		if text := c.contradiction(s, s.Tasks > 0, tasksImplied); text != "" {
			return p.refuseLater(badGPUs(text))
		}
	}
	return nil
}

// gpuCountsOf returns the counts of each type of GPU.
func gpuCountsOf(s *job.Shape) (counts []gpuCounts) {
	for _, d := range s.GRESDemands() {
		if d.Name == "gpu" {
			counts = append(counts, gpuCounts{job: d.Job, node: d.Node, socket: d.Socket, task: d.Task})
		}
	}
	return counts
}

// checkLeastGPUs returns an error for a scope that has fewer GPUs than one within it, which
// Slurm finds before other errors about GPUs.
func checkLeastGPUs(p *Parsed) error {
	if p.Step.JobID != 0 {
		return nil
	}
	for _, c := range gpuCountsOf(&p.Job.Shape) {
		if text := c.tooFew(); text != "" {
			return p.refuseLater(badGPUs(text))
		}
	}
	return nil
}

// tooFew returns Slurm's error about a scope with fewer GPUs than one within it, or "". The
// texts are those that Slurm 22.05.8 prints.
func (c *gpuCounts) tooFew() string {
	const least = "Failed to ensure --gpus >= "
	switch inner := max(c.socket, c.task); {
	case c.job > 0 && c.job < max(c.node, inner):
		return least + "--gres=gpu/--gpus-per-node >= --gpus-per-socket"
	case c.node > 0 && c.node < inner:
		return least + "--gpus-per-task"
	}
	return ""
}

// checkTasksPerGPU returns an error for a number of tasks per GPU that determines neither the
// number of GPUs nor that of tasks.
func checkTasksPerGPU(p *Parsed) error {
	s := &p.Job.Shape
	nodes := p.fixesNodes()
	gpus := slices.ContainsFunc(gpuCountsOf(s), func(c gpuCounts) bool { return c != gpuCounts{} })
	if p.Step.JobID != 0 || s.TasksPerGPU == 0 || s.Tasks > 0 || nodes || gpus {
		return nil
	}
	return p.refuseLater(badGPUs("gres_job_state_validate: --ntasks-per-tres needs either " +
		"a GRES GPU specification or a node/ntask specification"))
}

// fixesNodes reports whether --nodes is given and no range.
func (p *Parsed) fixesNodes() bool {
	s := &p.Job.Shape
	return p.Has("nodes") && (s.MaxNodes == 0 || s.MaxNodes == s.MinNodes)
}

func badGPUs(text string) error {
	return slurmerr.New(slurmerr.Refused, text+"\nInvalid generic resource (gres) specification")
}

// contradiction returns Slurm's error about counts that contradict each other, or
// "". tasksGiven: the number of tasks was given; tasksImplied: other options
// determine it.
func (c *gpuCounts) contradiction(s *job.Shape, tasksGiven, tasksImplied bool) string {
	switch {
	case c.tooFew() != "":
		return c.tooFew()
	case c.node > 0 && c.socket > 0 && c.node%c.socket != 0:
		return "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket."
	case c.job == 0 && c.task > 0 && !tasksGiven && !tasksImplied:
		return "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed."
	case c.socket > 0 && c.task > 0 && c.socket%c.task != 0:
		return "Failed to validate job spec, --gpus-per-socket not multiple of --gpus-per-task."
	case c.job == 0:
		return ""
	case c.node > 0 && c.job%c.node != 0:
		return "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node"
	}
	fewest, most := int64(max(s.MinNodes, 1)), int64(s.MaxNodes)
	if most == 0 {
		most = math.MaxInt64
	}
	if n := c.job / max(c.node, 1); c.node > 0 && (n < fewest || n > most) {
		return fmt.Sprintf(
			"Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%d) "+
				"doesn't fall between min_nodes (%d) and max_nodes (%d) boundaries.",
			n,
			fewest,
			most,
		)
	}
	switch {
	case c.task > 0 && c.job%c.task != 0:
		return "Failed to validate job spec, --gpus not multiple of --gpus-per-task"
	case c.task > 0 && tasksGiven && int64(s.Tasks) != c.job/c.task:
		return "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks " +
			"differ from -n/--ntasks."
	case c.job < fewest:
		return "Failed to validate job spec, --gpus < -N"
	}
	return ""
}
