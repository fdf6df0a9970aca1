package authz

import (
	"slices"
	"strings"
)

// Reach is the set of callers who may set a field.
type Reach uint8

// The reaches, each including those before it.
const (
	// Nobody but Berth's own processes.
	Nobody Reach = iota
	ByAdministrator
	ByOperator
	// Bounded: operators without bounds; owners and coordinators within Field.Bound.
	Bounded
	// ByOwner: every caller who may update the job.
	ByOwner
)

var reaches = [...]string{"the cluster only", "administrators", "operators", "owner, within bounds; operators", "owner"}

func (r Reach) String() string { return reaches[r] }

// Grant returns what callers with the roles may do to a field with that reach.
func (r Reach) Grant(s Roles) Grant {
	switch {
	case s.Has(Process):
		return Allow
	case s.Has(Administrator) && r >= ByAdministrator, s.Has(Operator) && r >= ByOperator:
		return Allow
	case !s.Has(Owner) && !s.Has(Coordinator):
		return Deny
	case r == Bounded:
		return Limited
	case r == ByOwner:
		return Allow
	}
	return Deny
}

// Phase is the time in a job's life in which a field may change.
type Phase uint8

// The phases: always, or only while the job is pending.
const (
	Always Phase = iota
	Waiting
)

// Field is one row of the table of a job's fields.
type Field struct {
	// Paths are members of a BatchJob's spec: "suspend", "job.time.limit".
	Paths []string
	// Keys are its parameters of scontrol update, in lower case.
	Keys []string
	// Set is who may set it at submission, Change who may change it later.
	Set, Change Reach
	While       Phase
	// Checked: the changed job must be one that its user could submit now.
	Checked bool
	// Bound describes the bounds where Set or Change is Bounded.
	Bound string
}

// Fields returns the table of fields in the order of the documentation.
func Fields() []Field { return slices.Clone(fields) }

// FieldAt returns the row of a member of the spec.
func FieldAt(path string) (*Field, bool) {
	i, ok := byPath[path]
	if !ok {
		return nil, false
	}
	return &fields[i], true
}

// OperatorKey reports whether a parameter of scontrol update is for operators only. A
// parameter without a row is.
func OperatorKey(key string) bool {
	i, ok := byKey[strings.ToLower(key)]
	return !ok || fields[i].Change < Bounded
}

// HasKey reports whether a parameter of scontrol update has a row.
func HasKey(key string) bool {
	_, ok := byKey[strings.ToLower(key)]
	return ok
}

var byPath, byKey = indexes()

func indexes() (paths, keys map[string]int) {
	paths, keys = map[string]int{}, map[string]int{}
	for i := range fields {
		for _, p := range fields[i].Paths {
			paths[p] = i
		}
		for _, k := range fields[i].Keys {
			keys[k] = i
		}
	}
	return paths, keys
}

func at(paths ...string) []string { return paths }

// below returns the paths of members of one member.
func below(prefix string, names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + "." + n
	}
	return out
}

// fields is the table of fields. Every member of a BatchJob's spec has a row; a test
// compares the table with the type.
var fields = []Field{
	{Paths: at("jobID", "user", "partition", "submitTime", "origin", "task", "workload")},
	{Paths: at("script", "environment", "components"), Set: ByOwner},
	{Paths: at("cancel"), Change: Bounded,
		Bound: "once, by the caller who requests it; nobody withdraws it, not even operators"},
	{Paths: at("requeues"), Change: Bounded,
		Bound: "raised by one, if the job may be requeued; also for operators"},
	{Paths: at("suspend"), Change: ByOperator},

	{Paths: at("job.hold"), Set: Bounded, Change: Bounded, Bound: `never from or to "admin"`},
	{Paths: at("job.priority"), Keys: at("priority"), Set: Bounded, Change: Bounded,
		Bound: "0 (a hold) at submission; later lower only"},
	{Paths: at("job.nice"), Keys: at("nice"), Set: Bounded, Change: Bounded, Bound: "not below 0"},
	{Paths: at("job.siteFactor"), Keys: at("sitefactor"), Set: ByOperator, Change: ByOperator, While: Waiting},
	{Paths: at("job.adminComment"), Keys: at("admincomment"), Set: ByOperator, Change: ByOperator},
	{Paths: at("job.extra"), Set: ByOwner, Change: ByOperator},
	{Paths: at("job.name"), Keys: at("jobname", "name"), Set: ByOwner, Change: ByOwner},
	{Paths: at("job.comment"), Keys: at("comment"), Set: ByOwner, Change: ByOwner},
	{Paths: at("job.wckey"), Keys: at("wckey"), Set: ByOwner, Change: ByOwner, While: Waiting},
	{Paths: at("job.mail.types", "job.mail.user"), Keys: at("mailuser", "mailtype"), Set: ByOwner, Change: ByOwner},

	{Paths: at("job.partitions"), Keys: at("partition"), Set: ByOwner, Change: ByOwner, While: Waiting, Checked: true},
	{Paths: at("job.account"), Keys: at("account"), Set: ByOwner, Change: ByOwner, While: Waiting, Checked: true},
	{Paths: at("job.qos"), Keys: at("qos"), Set: ByOwner, Change: ByOwner, Checked: true},
	{Paths: at("job.reservation"), Keys: at("reservation", "reservationname"), Set: ByOwner, Change: ByOwner,
		While: Waiting, Checked: true},
	{Paths: at("job.licenses"), Keys: at("licenses"), Set: ByOwner, Change: ByOwner, While: Waiting, Checked: true},
	{Paths: below("job.dependencies", "any", "items"), Keys: at("dependency"), Set: ByOwner, Change: ByOwner,
		While: Waiting, Checked: true},

	{Paths: below("job.shape", "minNodes", "maxNodes", "tasks", "tasksPerNode", "cpusPerTask", "minCPUs", "memPerNode",
		"memPerCPU", "memPerGPU", "tmpDisk", "gres", "socketsPerNode", "coresPerSocket", "threadsPerCore"),
		Keys: at("numnodes", "reqnodes", "numcpus", "reqsockets", "reqcores", "reqthreads", "mincpus", "numtasks",
			"reqprocs", "cpuspertask", "mincpusnode", "minmemorynode", "minmemorycpu",
			"mintmpdisknode", "gres", "trespernode", "tresperjob", "trespersocket", "trespertask"),
		Set: ByOwner, Change: ByOwner, While: Waiting, Checked: true},
	{
		Paths: below("job.shape", "tasksPerSocket", "tasksPerCore", "tasksPerGPU", "cpusPerGPU", "overcommit"),
		Set:   ByOwner,
	},
	{Paths: at("job.shape.coreSpec"), Keys: at("corespec", "threadspec"), Set: ByOwner, Change: ByOperator,
		While: Waiting, Checked: true},

	{Paths: below("job.placement", "nodeList", "exclude", "constraint", "prefer", "switches", "switchesWaitSeconds"),
		Keys: at("features", "prefer", "reqnodelist", "nodelist", "excnodelist", "switches"),
		Set:  ByOwner, Change: ByOwner, While: Waiting, Checked: true},
	{Paths: below("job.placement", "oversubscribe", "contiguous"), Keys: at("oversubscribe", "shared", "contiguous"),
		Set: ByOwner, Change: ByOperator, While: Waiting, Checked: true},
	{
		Paths: below("job.placement", "exclusive", "segment", "segments", "batch", "spreadJob", "useMinNodes",
			"distribution", "hint"),
		Set: ByOwner,
	},

	{Paths: at("job.time.limit"), Keys: at("timelimit", "endtime"), Set: ByOwner, Change: Bounded, Checked: true,
		Bound: "lower only, once the job has started"},
	{Paths: at("job.time.min"), Keys: at("timemin"), Set: ByOwner, Change: ByOwner, While: Waiting},
	{Paths: at("job.time.begin"), Keys: at("starttime", "eligibletime"), Set: ByOwner, Change: ByOwner, While: Waiting},
	{Paths: at("job.time.deadline"), Keys: at("deadline"), Set: ByOwner, Change: ByOperator},
	{Paths: below("job.time", "signal", "signalBeforeSeconds", "signalBatch", "signalReservation"), Set: ByOwner},

	{Paths: below("job.batch", "output", "workDir"), Keys: at("stdout", "workdir"), Set: ByOwner, Change: ByOwner,
		While: Waiting, Checked: true},
	{Paths: at("job.batch.requeue"), Keys: at("requeue"), Set: ByOwner, Change: ByOwner},
	{Paths: at("job.batch.group"), Set: ByAdministrator},
	{Paths: below("job.batch", "submitHost", "submitAddress", "submitSID", "submitLine",
		"args", "command", "error", "input", "openMode",
		"export", "umask", "noKill",
		"killOnInvalidDep", "rlimits", "container", "client"), Set: ByOwner},

	{Paths: at("job.array"), Keys: at("arraytaskthrottle"), Set: ByOwner, Change: Bounded,
		Bound: "only the number of tasks that run at a time; also for operators"},
	{Paths: at("job.het")},
	{Paths: at("job.options"), Set: ByOwner},
	// Parameters that have no effect here.
	{Keys: at("burstbuffer", "clusterfeatures", "delayboot"), Change: ByOwner},
}
