package option

// Verb is a subcommand of a command such as scontrol.
type Verb struct {
	Name  string
	Usage string // with its arguments
	Help  string // one line
}

// VerbsOf returns the verbs of the named command, or nil if it has none.
func VerbsOf(name string) []Verb {
	switch name {
	case "scontrol":
		return ScontrolVerbs
	case "sacctmgr":
		return SacctmgrVerbs
	case "sreport":
		return SreportVerbs
	}
	return nil
}

// ScontrolVerbs are in the order of the help text.
var ScontrolVerbs = []Verb{
	{"show", "show ENTITY [ID]", "job, step, node, partition, reservation, config, licenses, hostnames, ..."},
	{"update", "update ENTITY=NAME KEY=VALUE ...", "change a job, node, partition, reservation or step"},
	{"create", "create ENTITY=NAME KEY=VALUE ...", "create a reservation or partition"},
	{"delete", "delete ENTITY=NAME", "delete a reservation or partition"},
	{"hold", "hold JOBS|jobname=NAME", "keep pending jobs from starting"},
	{"uhold", "uhold JOBS", "hold jobs so that their user may release them"},
	{"holdu", "holdu JOBS", "the same as uhold"},
	{"release", "release JOBS", "let held jobs start"},
	{"requeue", "requeue JOBS", "put running or finished jobs back into the queue"},
	{"requeuehold", "requeuehold JOBS", "put jobs back into the queue, and hold them"},
	{"suspend", "suspend JOBS", "stop running jobs; they keep their nodes"},
	{"resume", "resume JOBS", "resume suspended jobs"},
	{"top", "top JOBS", "move jobs to the top of the user's own"},
	{"token", "token [lifespan=SECONDS] [username=USER]", "print a token for slurmrestd"},
	{"notify", "notify JOB MESSAGE", "write a line to the job's standard error"},
	{"write", "write batch_script JOB [FILE|-]", "write the job's script to a file"},
	{"wait_job", "wait_job JOB", "wait until the job's nodes are ready"},
	{"reboot", "reboot [ASAP] [nextstate=RESUME|DOWN] [reason=REASON] ALL|NODES",
		"reboot nodes when their jobs have ended"},
	{"cancel_reboot", "cancel_reboot NODES", "withdraw reboots that have not begun"},
	{"completing", "completing", "list completing jobs and their nodes"},
	{"listpids", "listpids [JOB[.STEP]]", "processes of jobs on this node"},
	{"pidinfo", "pidinfo PID", "the job of a process on this node"},
	{"ping", "ping", "whether the cluster answers"},
	{"reconfigure", "reconfigure", "objects are read as they change: nothing is left to do"},
	{"errnumstr", "errnumstr NUMBER", "the text of an error number"},
	{"cluster", "cluster [NAME]", "this cluster by its name"},
	{"details", "details", "show more from here on"},
	{"oneliner", "oneliner", "one line for each record from here on"},
	{"all", "all", "also hidden partitions from here on"},
	{"hide", "hide", "no hidden partitions from here on"},
	{"quiet", "quiet", "say less from here on"},
	{"verbose", "verbose", "say more from here on"},
	{"exit", "exit", "end the interactive mode"},
	{"quit", "quit", "the same"},
	{"version", "version", "print the version"},
	{"help", "help", "print this text"},
}

// ScontrolEntities are what scontrol show shows.
var ScontrolEntities = []string{"job", "step", "node", "partition", "reservation", "config", "licenses", "assoc_mgr",
	"aliases", "hostnames", "hostlist",
	"hostlistsorted", "topology", "federation", "burstbuffer"}

// ScontrolKeys are the parameters of scontrol update, create and delete by entity
// (status.EntityJob and so on), as scontrol(1) writes them.
var ScontrolKeys = map[string][]string{
	"job": {"Account", "AdminComment", "ArrayTaskThrottle", "BurstBuffer", "ClusterFeatures", "Comment", "Contiguous",
		"CoreSpec", "CPUsPerTask",
		"Deadline", "DelayBoot", "Dependency", "EligibleTime", "EndTime", "ExcNodeList", "Features", "Gres",
		"JobName", "Licenses", "MailType", "MailUser",
		"MinCPUs", "MinCPUsNode", "MinMemoryCPU", "MinMemoryNode", "MinTmpDiskNode", "Name", "Nice", "NodeList",
		"NtasksPerNode", "NumCPUs", "NumNodes",
		"NumTasks", "OverSubscribe", "Partition", "Prefer", "Priority", "QOS", "ReqCores", "ReqNodeList", "ReqNodes",
		"ReqProcs", "ReqSockets", "ReqThreads", "Requeue",
		"ReservationName", "ResetAccrueTime", "Shared", "SiteFactor", "StartTime", "StdOut", "Switches",
		"SystemComment", "ThreadSpec", "TimeLimit",
		"TimeMin", "TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask", "UserID", "WCKey", "WorkDir"},
	"step": {"TimeLimit"},
	"node": {"ActiveFeatures", "AvailableFeatures", "Comment", "CpuBind", "Extra", "Gres", "NodeAddr", "NodeHostname",
		"Reason",
		"State", "Weight"},
	"partition": {"AllocNodes", "AllowAccounts", "AllowGroups", "AllowQOS", "Alternate", "CpuBind", "Default",
		"DefaultTime", "DefMemPerCPU",
		"DefMemPerNode", "DenyAccounts", "DenyQOS", "DisableRootJobs", "ExclusiveUser", "GraceTime", "Hidden",
		"JobDefaults", "MaxCPUsPerNode", "MaxMemPerCPU",
		"MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe", "OverTimeLimit",
		"PowerDownOnIdle", "PreemptMode", "Priority",
		"PriorityJobFactor", "PriorityTier", "QOS", "ReqResv", "RootOnly", "Shared", "State", "TRESBillingWeights"},
	"reservation": {"Accounts", "BurstBuffer", "Comment", "CoreCnt", "Duration", "EndTime", "Features", "Flags",
		"Groups", "Licenses", "MaxStartDelay",
		"NodeCnt", "Nodes", "PartitionName", "Skip", "StartTime", "TRES", "Users", "Watts"},
}

// SacctmgrVerbs are in the order of the help text.
var SacctmgrVerbs = []Verb{
	{"show", "show ENTITY [KEY=VALUE ...]",
		"list accounts, associations, users, qos, clusters, wckeys, tres, events, transactions, problems or runawayjobs"},
	{"list", "list ENTITY [KEY=VALUE ...]", "the same"},
	{"add", "add ENTITY NAMES [KEY=VALUE ...]", "create an account, user, qos or coordinator"},
	{"create", "create ENTITY NAMES [KEY=VALUE ...]", "the same"},
	{"modify", "modify ENTITY [where KEY=VALUE ...] set KEY=VALUE ...", "change accounts, users, qos or the cluster"},
	{"delete", "delete ENTITY [where KEY=VALUE ...]", "delete accounts, users, qos or coordinators"},
	{"remove", "remove ENTITY [where KEY=VALUE ...]", "the same"},
	{"dump", "dump CLUSTER [FILE=FILE]", "write accounts, users and qos to a file"},
	{"load", "load FILE", "read a file that dump wrote"},
	{"archive", "archive dump [PurgeJobAfter=TIME] | archive load FILE",
		"move old job records from the database to a file, or back"},
	{"version", "version", "print the version"},
	{"help", "help", "print this text"},
	{"exit", "exit", "end the interactive mode"},
	{"quit", "quit", "the same"},
}

// SreportVerbs are the kinds of reports.
var SreportVerbs = []Verb{
	{"cluster", "cluster REPORT [KEY=VALUE ...]", "of the whole cluster, by accounts and users"},
	{"job", "job REPORT [KEY=VALUE ...]", "by sizes of jobs"},
	{"user", "user REPORT [KEY=VALUE ...]", "by users"},
}

// SreportNames are the reports of each kind.
var SreportNames = map[string][]string{
	"cluster": {
		"AccountUtilizationByUser", "UserUtilizationByAccount", "UserUtilizationByWckey", "Utilization",
		"WCKeyUtilizationByUser",
	},
	"job":  {"SizesByAccount", "SizesByWckey"},
	"user": {"TopUsage"},
}

// SreportKeys are the parameters of a report.
var SreportKeys = []string{
	"Start=", "End=", "Format=", "Users=", "Accounts=", "TopCount=", "Grouping=", "Clusters=", "Tres=", "Tree",
	"Group", "FlatView", "PrintJobCount",
}

// SacctmgrEntities are the entities of each verb.
var SacctmgrEntities = map[string][]string{
	"show":   {"account", "association", "cluster", "qos", "runawayjobs", "tres", "user", "wckey"},
	"add":    {"account", "coordinator", "qos", "user"},
	"modify": {"account", "cluster", "qos", "user"},
	"delete": {"account", "coordinator", "qos", "user"},
}

var sacctmgrLimits = []string{"Fairshare", "GrpJobs", "GrpSubmit", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins",
	"GrpWall", "MaxJobs", "MaxSubmitJobs", "MaxTRES",
	"MaxTRESMins", "MaxTRESPerNode", "MaxWall", "QosLevel", "DefaultQOS", "Priority"}

// SacctmgrKeys returns the keys of an entity for a verb. "set" stands for the keys
// that modify sets and that add accepts too.
func SacctmgrKeys(entity, verb string) []string {
	switch verb {
	case "show":
		keys := []string{"Format=", "Names="}
		switch entity {
		case "user", "account":
			keys = append(keys, "WithAssoc", "WithCoordinator")
		case "association":
			keys = []string{"Format=", "Accounts=", "Users=", "Partitions=", "Clusters=", "Tree", "WOPInfo", "WOLimits"}
		}
		return keys
	case "where", "delete":
		keys := []string{"Names="}
		switch entity {
		case "user":
			keys = append(keys, "Account=", "Partitions=", "Cluster=")
		case "account":
			keys = append(keys, "Cluster=", "Parent=")
		case "coordinator":
			keys = append(keys, "Account=")
		}
		return keys
	}
	var keys []string
	switch entity {
	case "user":
		keys = []string{"Account", "Partitions", "DefaultAccount", "AdminLevel", "DefaultWCKey", "WCKeys"}
	case "account":
		keys = []string{"Parent", "Description", "Organization"}
	case "coordinator":
		return []string{"Account="}
	case "qos":
		keys = []string{"Description", "Flags", "UsageFactor", "UsageThreshold", "Preempt", "PreemptMode",
			"PreemptExemptTime", "GraceTime", "MaxTRESPU", "MaxJobsPU",
			"MaxSubmitPU", "MaxTRESPA", "MaxJobsPA", "MaxSubmitPA", "MinTRES"}
	}
	out := make([]string, 0, len(keys)+len(sacctmgrLimits))
	for _, k := range append(keys, sacctmgrLimits...) {
		if entity != "qos" || k != "Fairshare" && k != "QosLevel" && k != "DefaultQOS" {
			out = append(out, k+"=")
		}
	}
	return out
}

// SshareFields are the columns of sshare --format, SacctmgrFields those of
// sacctmgr show ... Format=.
var (
	SshareFields = []string{"Account", "Cluster", "EffectvUsage", "FairShare", "GrpTRESMins", "GrpTRESRaw", "ID",
		"LevelFS", "NormShares", "NormUsage", "Partition",
		"RawShares", "RawUsage", "TRESRunMins", "User"}
	SacctmgrFields = []string{"Account", "AdminLevel", "Cluster", "ControlHost", "ControlPort", "Coordinators",
		"DefaultAccount", "DefaultQOS", "DefaultWCKey", "Description",
		"FairShare", "Flags", "GraceTime", "GrpJobs", "GrpSubmit", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins",
		"GrpWall", "ID", "MaxJobs", "MaxJobsPA", "MaxJobsPU",
		"MaxNodes", "MaxSubmit", "MaxSubmitPA", "MaxSubmitPU", "MaxTRES", "MaxTRESMins", "MaxTRESPA", "MaxTRESPU",
		"MaxTRESPerNode", "MaxWall", "MinTRES", "Name",
		"Organization", "ParentName", "Partition", "Preempt", "PreemptExemptTime", "PreemptMode", "Priority", "QOS",
		"Share", "TRESName", "Type", "UID", "UsageFactor",
		"UsageThreshold", "User", "WCKey"}
)
