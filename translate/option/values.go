package option

// Kind is the kind of an option's values, for completion.
type Kind uint8

// The kinds of values. Those from Jobs on come from the cluster.
const (
	Free  Kind = iota // numbers, times, texts: no completion
	Words             // one of Domain.Words
	File
	Dir
	Program
	Environment // names of variables
	Signals
	Dependencies
	JobStates
	NodeStates
	Fields  // names of columns: -O, --format
	Letters // %x columns: -o
	SortBy  // letters with + and -
	Reports // names of units of sreport -t

	Jobs
	Steps
	JobNames
	Partitions
	Nodes
	Accounts
	QOS
	Reservations
	Users
	Features
	GRES
	Licenses
	WCKeys
	Clusters
)

// Domain describes the values that an option accepts.
type Domain struct {
	Kind Kind
	// Words are the values of Kind Words; those that end in = or : need more text.
	Words []string
	// List: several values, separated by commas.
	List bool
}

// DomainOf returns the domain of option o of the named command, or the zero value
// for options without a value.
func DomainOf(name string, o *Option) Domain {
	if o.Arg == NoArg {
		return Domain{}
	}
	if v, ok := valuesIn[name+" "+o.Name]; ok {
		return v
	}
	return values[o.Name]
}

func one(k Kind) Domain           { return Domain{Kind: k} }
func many(k Kind) Domain          { return Domain{Kind: k, List: true} }
func words(w ...string) Domain    { return Domain{Kind: Words, Words: w} }
func wordList(w ...string) Domain { return Domain{Kind: Words, Words: w, List: true} }

// valuesIn are the domains of options that differ in one command, by "COMMAND
// OPTION".
var valuesIn = map[string]Domain{
	"scancel state": words("PENDING", "RUNNING", "SUSPENDED"), "sinfo states": many(NodeStates),
	"sinfo nodes": many(Nodes), "scancel name": one(JobNames),
	"squeue name": many(JobNames), "sacct name": many(JobNames), "sbcast jobid": one(Jobs),
	"strigger jobid": one(Jobs), "strigger node": many(Nodes),
	"sprio format": one(Letters), "squeue format": one(Letters), "sinfo format": one(Letters),
	"scontrol uid": one(Users),
	"sacct flags":  wordList("SchedSubmit", "SchedMain", "SchedBackfill"), "sbcast size": {},
	"sbcast exclude": one(File),
	"sreport time":   one(Reports), "sacct uid": many(Users), "strigger user": one(Users),
	"sacct constraints": many(Features),
	"scancel partition": one(Partitions), "scancel account": one(Accounts), "scancel qos": one(QOS),
	"scancel user":        one(Users),
	"scancel reservation": one(Reservations), "squeue reservation": one(Reservations), "scancel signal": one(Signals),
	"scontrol clusters": one(Clusters),
	"sbatch account":    one(Accounts), "srun account": one(Accounts), "salloc account": one(Accounts),
	"sbatch qos": one(QOS), "srun qos": one(QOS),
	"salloc qos": one(QOS), "srun wait": {}, "sview format": one(Letters), "sview name": many(JobNames),
	"sview reservation": one(Reservations),
}

// values are the domains of all options that have a value; a test checks that none
// is missing. Those of Table come first.
var values = map[string]Domain{
	"account": many(Accounts), "array": {}, "comment": {}, "dependency": one(Dependencies), "job-name": {},
	"kill-on-invalid-dep": words("yes", "no"),
	"licenses":            many(Licenses), "mail-type": wordList("NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL",
		"INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT",
		"TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS"),
	"mail-user": one(Users), "mcs-label": {}, "nice": {}, "no-kill": words("off"), "partition": many(Partitions),
	"priority": {}, "qos": many(QOS),
	"reservation": many(Reservations), "wckey": one(WCKeys),

	"cpus-per-task": {}, "extra-node-info": {}, "sockets-per-node": {}, "cores-per-socket": {},
	"threads-per-core": {}, "mincpus": {}, "nodes": {},
	"ntasks": {}, "ntasks-per-node": {}, "ntasks-per-socket": {}, "ntasks-per-core": {}, "ntasks-per-tres": {},
	"core-spec": {}, "thread-spec": {},
	"mem": {}, "mem-per-cpu": {}, "mem-per-gpu": {},
	"mem-bind": wordList("none", "local", "rank", "map_mem:", "mask_mem:", "quiet", "verbose", "prefer", "sort",
		"nosort"),
	"tmp": {}, "gres": many(GRES),
	"gres-flags": wordList("allow-task-sharing", "disable-binding", "enforce-binding", "multiple-tasks-per-sharing",
		"one-task-per-sharing"),
	"gpus": {}, "gpus-per-node": {}, "gpus-per-socket": {},
	"gpus-per-task": {}, "ntasks-per-gpu": {}, "cpus-per-gpu": {},
	"gpu-bind":      wordList("closest", "none", "single:", "map_gpu:", "mask_gpu:", "verbose"),
	"gpu-freq":      wordList("low", "medium", "high", "highm1", "memory=", "verbose"),
	"tres-per-task": wordList("cpu=", "gres/gpu="),
	"tres-bind":     words("gres/gpu:closest", "gres/gpu:none", "gres/gpu:single:", "gres/gpu:map:", "gres/gpu:mask:"),

	"constraint": one(Features), "batch": one(Features), "prefer": one(Features), "cluster-constraint": one(Features),
	"distribution": words("block", "cyclic", "plane=", "arbitrary", "block:block", "block:cyclic", "block:fcyclic",
		"cyclic:block", "cyclic:cyclic", "cyclic:fcyclic"),
	"exclude": many(Nodes), "exclusive": words("user", "mcs", "topo"),
	"hint":     words("compute_bound", "memory_bound", "multithread", "nomultithread", "help"),
	"nodefile": one(File), "nodelist": many(Nodes), "requeue": words("expedite"), "switches": {}, "network": {},
	"wait-all-nodes": words("0", "1"), "delay-boot": {}, "segment": {},

	"time": {}, "time-min": {},
	"begin": {
		Kind: Words, Words: []string{"now", "now+", "today", "tomorrow", "midnight", "noon", "fika", "teatime"},
	},
	"deadline": {},
	"signal":   one(Signals), "immediate": {},

	"chdir": one(Dir), "output": one(File), "error": one(File), "input": one(File),
	"open-mode": words("append", "truncate"), "export": many(Environment),
	"export-file": one(File), "get-user-env": {}, "wrap": {},
	"propagate": wordList("ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS",
		"STACK"),
	"bb": {}, "bbf": one(File), "container": one(Dir), "container-id": {}, "container-image": {},
	"container-mounts": one(Dir), "container-workdir": {},
	"container-name": {}, "container-save": one(File), "container-env": many(Environment),

	"kill-on-bad-exit": words("0", "1"), "wait": {}, "relative": {}, "mpi": words("none", "pmi2", "list"),
	"jobid": one(Jobs), "het-group": {}, "threads": {},
	"cpu-bind": wordList("none", "sockets", "cores", "threads", "ldoms", "rank", "map_cpu:", "mask_cpu:", "quiet",
		"verbose", "help"),
	"prolog": one(File), "epilog": one(File), "task-prolog": one(File), "task-epilog": one(File),
	"bcast": one(File), "bcast-exclude": one(Dir),
	"compress": words("lz4", "none"), "send-libs": words("yes", "no"), "resv-ports": {},
	"accel-bind":   words("g", "m", "n", "v"),
	"slurmd-debug": words(slurmdLevels...), "msg-timeout": {}, "treewidth": {}, "oom-kill-step": words("0", "1"),
	"x11": words("all", "first", "last"),

	"kill-command": one(Signals), "clusters": one(Clusters), "uid": one(Users), "gid": {},
	"acctg-freq": wordList("task=", "energy=", "network=", "filesystem="),
	"profile":    wordList("All", "None", "Energy", "Task", "Lustre", "Network"), "power": words("level"),
	"context": {},
	"extra":   {}, "resources": {},
	"cpu-freq": words("low", "medium", "high", "highm1", "Conservative", "OnDemand", "Performance", "PowerSave",
		"UserSpace", "SchedUtil"),

	"theme": words("dark", "light", "blue-orange", "mono"), "view": words("nodes", "history", "timeline"),
	"accounts": many(Accounts), "delimiter": {}, "endtime": {}, "file": one(File), "flags": {}, "ncpus": {},
	"nnodes": {}, "jobs": many(Jobs),
	"json": words("v0.0.38", "v0.0.39", "v0.0.40", "list"), "yaml": words("v0.0.38", "v0.0.39", "v0.0.40", "list"),
	"timelimit-min": {}, "timelimit-max": {},
	"cluster": one(Clusters), "name": one(JobNames), "format": many(Fields), "Format": many(Fields),
	"state": many(JobStates), "states": many(JobStates),
	"starttime": {}, "units": words("K", "M", "G", "T", "P"), "constraints": one(Features), "wckeys": many(WCKeys),
	"whole-hetjob": words("yes", "no"),
	"associations": {}, "user": many(Users), "users": many(Users), "sibling": {}, "iterate": {}, "sort": many(SortBy),
	"steps":        many(Steps),
	"input-filter": {}, "output-filter": {}, "error-filter": {}, "fanout": {}, "size": {}, "timeout": {},
	"tres": wordList("cpu", "mem", "node", "billing", "gres/gpu"),
	"id":   {}, "reason": {}, "node": many(Nodes), "offset": {}, "program": one(File),
}
