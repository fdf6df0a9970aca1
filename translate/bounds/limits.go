// Package bounds defines the limits of requests: the length of a text, the number of
// entries of a list, the range of a count or a time. Every entry point uses this
// table: admission on create and on update, the queue API's operations and queries,
// the accounting queries, the commands before they send anything, and the schemas of
// the custom resources, into which `make generate` writes the numbers.
//
// There are two kinds of limits: rules, one for each field of a type (see Rules, Job),
// and budgets, for quantities that are not fields of an object, such as the ids in one
// query (see Budget). The length of a text is in bytes. Limits that Slurm 22.05.8 also
// has were measured with it.
package bounds

// Slurm's messages for values beyond a bound.
const (
	TooLong        = "Pathname of a file, directory or other parameter too long"
	BadTimeLimit   = "Requested time limit is invalid (missing or exceeds some limit)"
	BadTime        = "Invalid time specified"
	BadCPUs        = "More processors requested than permitted"
	BadNodeCount   = "Node count specification invalid"
	BadLicense     = "Invalid license specification"
	BadGRES        = "Invalid generic resource (gres) specification"
	BadMemory      = "Memory required by task is not available"
	BadDependency  = "Job dependency problem"
	BadArray       = "Invalid job array specification"
	BadNice        = "Invalid --nice value"
	BadNodeName    = "Invalid node name specified"
	BadPartition   = "Invalid partition name specified"
	BadGroup       = "Invalid group id"
	BadTaskDist    = "Task distribution specification invalid"
	BadReservation = "Requested reservation is invalid"
)

// Lengths of texts, in bytes.
const (
	MaxName       = 1024      // of jobs, accounts, QOS, reservations, wckeys; comments, constraints: Slurm's
	MaxPath       = 4096      // PATH_MAX
	MaxObjectName = 253       // of an object of Kubernetes: users, partitions
	MaxNodeName   = 253       // likewise
	MaxArgument   = 128 << 10 // one argument or environment entry: Linux' MAX_ARG_STRLEN
	MaxLine       = 128 << 10 // a command line
	MaxArraySpec  = 64 << 10  // the text of --array
	MaxHostlist   = 64 << 10  // a hostlist expression: Slurm's
	MaxDepend     = 128 << 10 // the text of --dependency: Slurm's
)

// Sizes of lists and maps.
const (
	MaxPartitions   = 128   // of one job
	MaxLicenses     = 128   // of one job
	MaxGRES         = 64    // of one job
	MaxDependencies = 4096  // terms of one job, after duplicates are merged
	MaxNodeNames    = 16384 // of one --nodelist or --exclude, after expansion
	MaxArguments    = 16384 // of the batch script
	MaxMailTypes    = 16
	MaxRlimits      = 32
	MaxContainer    = 16
	MaxOptions      = 128 // options without a field of their own
	MaxComponents   = 128 // of a heterogeneous job, the first one included: Slurm's MAX_HET_JOB_COMPS
)

// Ranges of numbers.
const (
	MaxCount   = 1<<31 - 1           // tasks, nodes, CPUs in all
	MaxPerTask = 65533               // CPUs of a task, tasks of a node and the like: 16 bits in Slurm
	MaxMemory  = 1<<31 - 1           // MiB of one node, CPU or GPU: 2 PiB
	MaxMinutes = 100 * 366 * 24 * 60 // of a time limit: a hundred years
	// 2150-01-01 UTC: with MaxMinutes added, it still fits into 64 bits as nanoseconds
	MaxInstant    = 5680281600
	MaxArrayIndex = 4000001   // Slurm's limit of MaxArraySize
	MaxPriority   = 1<<32 - 2 // 32 bits in Slurm
	MaxNice       = 1<<31 - 3 // Slurm's NICE_OFFSET
	MaxID         = 1<<53 - 1 // the largest integer that every JSON parser reads exactly
	MaxUID        = 1<<32 - 2 // 2^32-1 is (uid_t)-1
)

// The size of one BatchJob. With its status it must fit into etcd's 1.5 MiB, where
// script and environment are base64.
const (
	MaxScript      = 4 << 20   // bytes of the batch script: Slurm's max_script_size
	MaxEnvironment = 16 << 20  // bytes of the environment
	MaxPayload     = 768 << 10 // script and environment together, compressed
	MaxJobBytes    = 256 << 10 // the Job, with all components of a heterogeneous job, as JSON
	MaxAnnotations = 64
)
