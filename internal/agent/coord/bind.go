package coord

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
)

// exitBindFailed is srun's exit code for tasks that cannot be bound as
// requested: the low byte of Slurm's error number.
const exitBindFailed = 192

// checkBinding returns an error if the tasks are to be bound to CPUs that the step does not
// have.
func (c *Coordinator) checkBinding(g *allocation, b *affinity.CPUBind) error {
	if b.Kind != affinity.MapCPU && b.Kind != affinity.MaskCPU || c.node.CPUs == nil {
		return nil
	}
	for k, n := range g.nodes {
		ids, err := affinity.ParseCPUList(n.CPUIDs)
		if err != nil || len(ids) == 0 {
			continue // unknown
		}
		for local := range min(len(n.Tasks), len(b.List)) {
			if slices.ContainsFunc(b.Listed(local), func(id int) bool { return !slices.Contains(ids, id) }) {
				const why = "Unable to satisfy cpu bind request"
				return &step.RefusedError{ExitCode: exitBindFailed, Lines: []string{
					"CPU binding outside of job step allocation, allocated CPUs are: " + affinity.FormatMask(ids) + ".",
					fmt.Sprintf("Task launch for StepId=%d.%d failed on node %s: %s",
						c.job.ID, g.id, c.job.Nodes[g.layout.Nodes[k]].Name, why),
					"Application launch failed: " + why,
				}}
			}
		}
	}
	return nil
}
