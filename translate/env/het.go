package env

import (
	"encoding/json"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
)

// addComponents adds the variables of each component of a heterogeneous job. Their names
// end in the number of the component, and each is repeated with its old name (PACK). A
// component with an invalid Job is omitted.
func addComponents(e *list, in Input) {
	w := in.Welcome
	if len(w.Het) == 0 {
		return
	}
	e.add("SLURM_HET_SIZE", count(len(w.Het)))
	e.add("SLURM_PACK_SIZE", count(len(w.Het)))
	for i := range w.Het {
		own := &list{}
		componentVars(own, in, &w.Het[i])
		addGroup(e, own, i)
	}
}

// addGroup adds the variables of component i.
func addGroup(e, own *list, i int) {
	for _, entry := range own.entries {
		name, v, _ := strings.Cut(entry, "=")
		e.add(name+"_HET_GROUP_"+count(i), v)
		e.add(name+"_PACK_GROUP_"+count(i), v)
	}
}

// addHetAllocation adds the variables of a heterogeneous job for the command of salloc:
// the id of the job, and for each component a few more variables than in batch scripts.
func addHetAllocation(e *list, in Input) {
	w := in.Welcome
	e.add("SLURM_JOB_ID", number(w.JobID))
	e.add("SLURM_CLUSTER_NAME", w.ClusterName)
	addComponents(e, in)
	for i := range w.Het {
		own, names := &list{}, make([]string, len(w.Het[i].Hosts))
		for k, h := range w.Het[i].Hosts {
			names[k] = h.Name
		}
		own.add("SLURM_JOBID", number(w.Het[i].JobID))
		own.add("SLURM_NODELIST", hostlist.Fold(names))
		own.add("SLURM_NNODES", count(len(names)))
		own.add("SLURM_NODE_ALIASES", "(null)")
		addGroup(e, own, i)
	}
}

// componentVars adds the variables of one component, without its number.
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
	e.addNonEmpty("SLURM_JOB_NAME", j.Name)
	e.add("SLURM_JOB_PARTITION", c.Partition)
	e.addNonEmpty("SLURM_JOB_ACCOUNT", c.Account)
	e.addNonEmpty("SLURM_JOB_QOS", c.QOS)
	e.addNonEmpty("SLURM_JOB_RESERVATION", j.Reservation)
	e.add("SLURM_JOB_NODELIST", hostlist.Fold(names))
	e.add("SLURM_JOB_NUM_NODES", count(len(c.Hosts)))
	e.add("SLURM_JOB_CPUS_PER_NODE", foldedCPUs(c.Hosts))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(one)))
	if !c.DefaultMemory || in.Job.Batch.Client == "" {
		addMemory(e, j.Shape)
	}
	addShape(e, one)
}
