package env

import (
	"encoding/json"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
)

// het adds what the script of a heterogeneous job is told of each component:
// variables with the component's number behind their name, the old spelling
// (PACK) as well. A component that cannot be read is left out.
func het(e *list, in Input) {
	w := in.Welcome
	if len(w.Het) == 0 {
		return
	}
	e.add("SLURM_HET_SIZE", count(len(w.Het)))
	e.add("SLURM_PACK_SIZE", count(len(w.Het)))
	for i := range w.Het {
		own := &list{}
		componentVars(own, in, &w.Het[i])
		perGroup(e, own, i)
	}
}

// perGroup adds what own says of component i.
func perGroup(e, own *list, i int) {
	for _, entry := range own.entries {
		name, v, _ := strings.Cut(entry, "=")
		e.add(name+"_HET_GROUP_"+count(i), v)
		e.add(name+"_PACK_GROUP_"+count(i), v)
	}
}

// hetAllocation is what the command of salloc is told of a heterogeneous job:
// nothing of the job as such but its id, and of each component a little more
// than batch scripts are.
func hetAllocation(e *list, in Input) {
	w := in.Welcome
	e.add("SLURM_JOB_ID", number(w.JobID))
	e.add("SLURM_CLUSTER_NAME", w.ClusterName)
	het(e, in)
	for i := range w.Het {
		own, names := &list{}, make([]string, len(w.Het[i].Hosts))
		for k, h := range w.Het[i].Hosts {
			names[k] = h.Name
		}
		own.add("SLURM_JOBID", number(w.Het[i].JobID))
		own.add("SLURM_NODELIST", hostlist.Fold(names))
		own.add("SLURM_NNODES", count(len(names)))
		own.add("SLURM_NODE_ALIASES", "(null)")
		perGroup(e, own, i)
	}
}

func componentVars(e *list, in Input, c *wire.HetComponent) {
	var j job.Job
	if json.Unmarshal(c.Job, &j) != nil {
		return
	}
	w := *in.Welcome
	w.JobID, w.Hosts, w.Index = c.JobID, c.Hosts, 0
	one := Input{Welcome: &w, Job: &j}
	names := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		names[i] = h.Name
	}
	e.add("SLURM_JOB_ID", number(c.JobID))
	e.some("SLURM_JOB_NAME", j.Name)
	e.add("SLURM_JOB_PARTITION", c.Partition)
	e.some("SLURM_JOB_ACCOUNT", c.Account)
	e.some("SLURM_JOB_QOS", c.QOS)
	e.some("SLURM_JOB_RESERVATION", j.Reservation)
	e.add("SLURM_JOB_NODELIST", hostlist.Fold(names))
	e.add("SLURM_JOB_NUM_NODES", count(len(c.Hosts)))
	e.add("SLURM_JOB_CPUS_PER_NODE", foldedCPUs(c.Hosts))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(one)))
	memory(e, j.Shape)
	shape(e, one)
}
