package option

// jobVariables are the variables that an option sets in the job's environment,
// without the prefix SLURM_. It does not have the variables of every job.
var jobVariables = map[string][]string{
	"array": {
		"ARRAY_JOB_ID",
		"ARRAY_TASK_ID",
		"ARRAY_TASK_COUNT",
		"ARRAY_TASK_MIN",
		"ARRAY_TASK_MAX",
		"ARRAY_TASK_STEP",
	},
	"ntasks":            {"NTASKS", "NPROCS"},
	"ntasks-per-node":   {"NTASKS_PER_NODE", "NTASKS", "NPROCS"},
	"ntasks-per-gpu":    {"NTASKS_PER_GPU", "NTASKS", "NPROCS"},
	"extra-node-info":   {"NTASKS", "NPROCS"},
	"ntasks-per-socket": {"NTASKS_PER_SOCKET"},
	"ntasks-per-core":   {"NTASKS_PER_CORE"},
	"cpus-per-task":     {"CPUS_PER_TASK"},
	"cpus-per-gpu":      {"CPUS_PER_GPU"},
	"threads-per-core":  {"THREADS_PER_CORE"},
	"overcommit":        {"OVERCOMMIT"},
	"mem":               {"MEM_PER_NODE"},
	"mem-per-cpu":       {"MEM_PER_CPU"},
	"mem-per-gpu":       {"MEM_PER_GPU"},
	"mem-bind":          {"MEM_BIND", "MEM_BIND_VERBOSE"},
	"gpus":              {"GPUS", "GPUS_ON_NODE", "JOB_GPUS"},
	"gpus-per-node":     {"GPUS_PER_NODE", "GPUS_ON_NODE", "JOB_GPUS"},
	"gpus-per-task":     {"GPUS_PER_TASK", "GPUS_ON_NODE", "JOB_GPUS"},
	"gpus-per-socket":   {"GPUS_PER_SOCKET", "GPUS_ON_NODE", "JOB_GPUS"},
	"gpu-bind":          {"GPU_BIND"},
	"gpu-freq":          {"GPU_FREQ"},
	"cpu-freq":          {"CPU_FREQ_REQ"},
	"distribution":      {"DISTRIBUTION"},
	"hint":              {"HINT"},
	"dependency":        {"JOB_DEPENDENCY"},
	"open-mode":         {"OPEN_MODE"},
	"acctg-freq":        {"ACCTG_FREQ"},
	"profile":           {"PROFILE"},
	"export":            {"EXPORT_ENV"},
}

// Sets returns the variables that the option sets in the environment of a batch job, without
// the prefix SLURM_.
func (o *Option) Sets() []string {
	if o.In&Sbatch == 0 {
		return nil
	}
	return jobVariables[o.Name]
}
