package option

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// readOrder are the input variables whose values can be wrong, without their prefixes, in the
// order in which Slurm's commands read them: the first wrong one is reported.
var readOrder = map[Command]string{
	Sbatch: "ACCTG_FREQ CORE_SPEC CPU_FREQ_REQ CPUS_PER_GPU DEBUG DELAY_BOOT DISTRIBUTION EXCLUSIVE GET_USER_ENV " +
		"GRES_FLAGS GPU_BIND GPU_FREQ MEM_BIND MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE NO_KILL OPEN_MODE POWER PROFILE " +
		"REQ_SWITCH SIGNAL THREAD_SPEC THREADS_PER_CORE TIMELIMIT WAIT_ALL_NODES",
	Salloc: "ACCTG_FREQ CORE_SPEC CPU_FREQ_REQ CPUS_PER_GPU DEBUG DELAY_BOOT EXCLUSIVE GPU_BIND GPU_FREQ GRES_FLAGS " +
		"IMMEDIATE KILL_CMD MEM_BIND MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE NO_KILL POWER PROFILE REQ_SWITCH SIGNAL " +
		"THREAD_SPEC THREADS_PER_CORE TIMELIMIT WAIT_ALL_NODES",
	Srun: "ACCTG_FREQ COMPRESS CORE_SPEC CPUS_PER_TASK CPU_FREQ_REQ CPUS_PER_GPU DELAY_BOOT DISTRIBUTION EXCLUSIVE " +
		"GPU_BIND GPU_FREQ GRES_FLAGS JOB_ID JOB_NUM_NODES KILL_BAD_EXIT MEM_BIND MEM_PER_CPU MEM_PER_GPU " +
		"MEM_PER_NODE NCORES_PER_SOCKET NO_KILL NPROCS NTASKS NSOCKETS_PER_NODE NTASKS_PER_NODE NTASKS_PER_GPU " +
		"NTASKS_PER_TRES OPEN_MODE POWER PROFILE REQ_SWITCH RESV_PORTS SEND_LIBS SIGNAL THREAD_SPEC THREADS " +
		"THREADS_PER_CORE TIMELIMIT WAIT DEBUG",
}

// variable is an input variable and the option that it sets.
type variable struct {
	name   string
	option *Option
}

// variablesOf returns the input variables of a command in the order in which it reads them.
var variablesOf = map[Command]func() []variable{
	Sbatch: orderedVariables(Sbatch), Srun: orderedVariables(Srun), Salloc: orderedVariables(Salloc),
}

// orderedVariables returns a function that returns the input variables of c: first those of
// readOrder. The others follow: they accept every value, so that their order matters only if several
// belong to one option.
func orderedVariables(c Command) func() []variable {
	return sync.OnceValue(func() (list []variable) {
		for _, o := range table() {
			if o.In&c == 0 {
				continue
			}
			for _, name := range o.EnvNames(c) {
				list = append(list, variable{name, o})
			}
		}
		order := strings.Fields(readOrder[c])
		place := func(v variable) int {
			_, name, _ := strings.Cut(v.name, "_")
			if i := slices.Index(order, name); i >= 0 {
				return i
			}
			return len(order)
		}
		slices.SortStableFunc(list, func(a, b variable) int { return cmp.Compare(place(a), place(b)) })
		return list
	})
}

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
